package locks_test

import (
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A view cannot take a lock: its query is a sub-query as any other.
func TestSubQuery_ofAView(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&widgetMaker{}, &widget{}, &widgetPart{}})
	key := pgtest.Key(t)
	for name, ask := range map[string]func(q *gorm.DB) *gorm.DB{
		"scopes":    func(q *gorm.DB) *gorm.DB { return q.Scopes(gormlock.WithXactLock(key)) },
		"clauses":   func(q *gorm.DB) *gorm.DB { return q.Clauses(gormlock.XactLock(key)) },
		"condition": func(q *gorm.DB) *gorm.DB { return q.Where("id > ?", 1).Clauses(gormlock.XactLock(key)) },
		"within": func(q *gorm.DB) *gorm.DB {
			return q.Where("id IN (?)", db.Model(&widget{}).Select("id").Clauses(gormlock.XactLock(key)))
		},
		"row lock": func(q *gorm.DB) *gorm.DB {
			return q.Clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second)))
		},
	} {
		for _, replace := range []bool{false, true} {
			err := db.Migrator().CreateView("widgets_seen", gorm.ViewOption{Replace: replace, Query: ask(db.Model(&widget{}))})
			if err == nil || !strings.Contains(err.Error(), "gormlock: ") {
				t.Errorf("%s, replace %t: %v", name, replace, err)
			}
			stand.MustDo(t, db.Exec("DROP VIEW IF EXISTS widgets_seen"))
		}
	}
	stand.Must(t, db.Migrator().CreateView("widgets_seen", gorm.ViewOption{Query: db.Model(&widget{}).Where("id > ?", 1)}))
}
