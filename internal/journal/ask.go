package journal

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/statement"
)

// Ask asks the server a yes-or-no question about a table. The answer is kept for a while: see Known. If the server does not answer, it
// reports false.
func Ask(stmt *gorm.Statement, asks, table, question string, about ...any) (yes bool) {
	if answer, known := Known(stmt, asks, table); known {
		return answer == true
	}
	if stmt.DryRun || table == "" {
		return false
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, question, about...)
	if err != nil {
		return false
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() || rows.Scan(&yes) != nil || rows.Err() != nil {
		return false
	}
	Learn(stmt, asks, table, yes)
	return yes
}
