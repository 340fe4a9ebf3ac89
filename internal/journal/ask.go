package journal

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/statement"
)

// Ask asks the server a question about a table, to which it answers with yes or no. The answer holds for a while: see Known. Without
// one it is no.
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
