package guard

import (
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/model"
)

// AskZone asks once in which zone the driver reads the times of a column that keeps no zone: versions are sent in that one. It is that of
// UTC, unless TimeZone is in the DSN of GORM's driver, or the program has given pgx another one.
func AskZone(stmt *gorm.Statement, m *model.Model) {
	if m.Column == nil || !m.Column.AsksZone() || stmt.DryRun || stmt.ConnPool == nil {
		return
	}
	rows, err := stmt.ConnPool.QueryContext(stmt.Context, "SELECT timestamp '2001-01-01'")
	if err != nil {
		return
	}
	defer func() { _ = rows.Close() }()
	var shown time.Time
	if rows.Next() && rows.Scan(&shown) == nil && rows.Err() == nil {
		m.Column.SetZone(shown.Location())
	}
}
