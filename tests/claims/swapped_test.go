package claims_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Another program puts a view in the place of a table. The first statement that needs more than the view has can fail, and no later one does.
func TestSwappedTable(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(db *gorm.DB) error{
		"a claim": func(db *gorm.DB) error {
			_, err := gormlock.Claim[rivalTask](db, 1, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB {
				return q.Where("id IN (SELECT id FROM rival_tasks AS other WHERE other.state = 'ready')")
			})
			return err
		},
		"a read of generics": func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				if err := tx.Model(&rivalTask{}).Where("id = 1").Update("state", "ready").Error; err != nil {
					return err
				}
				_, err := gorm.G[rivalTask](tx).Where("id = 1").First(t.Context())
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.SchemaDSN(t)
			db := stand.Versioned(t, []any{new(rivalTask)}, pgtest.Through(dsn))
			stand.MustDo(t, db.Exec("INSERT INTO rival_tasks (id, account_id) SELECT i, i FROM generate_series(1, 20) AS i"))
			stand.Must(t, use(db))
			other := stand.Open(t, pgtest.Through(dsn)) // another program: this one hears nothing of what it does
			stand.MustDo(t, other.Exec("ALTER TABLE rival_tasks RENAME TO tasks_of_old; CREATE VIEW rival_tasks AS SELECT * FROM tasks_of_old"))
			first := use(db)
			if err := use(db); err != nil {
				t.Errorf("%v, after %v", err, first)
			}
		})
	}
}
