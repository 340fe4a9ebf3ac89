package roots_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A root, or a part, that another transaction has changed since the snapshot of this one is a conflict that names it, and another
// attempt cures it.
func TestRoot_changedSinceTheSnapshot(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, models)
	rival := map[string]string{"orders": "UPDATE orders SET version = version + 1 WHERE id = ?", "notes": "UPDATE notes SET text = 'r' WHERE order_id = ?", "lines": "UPDATE lines SET qty = 3 WHERE order_id = ?"}
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		for name, c := range map[string]struct {
			write func(tx *gorm.DB, o *order, l *line, n *note) error
			table string
			keyed bool
		}{
			"create, by key": {table: "orders", keyed: true, write: func(tx *gorm.DB, o *order, _ *line, _ *note) error { return tx.Create(&line{OrderID: o.ID}).Error }},
			"create, held": {table: "orders", keyed: true, write: func(tx *gorm.DB, o *order, _ *line, _ *note) error {
				return tx.Create(&line{OrderID: o.ID, Order: o}).Error
			}},
			"create, held, not saved": {table: "orders", keyed: true, write: func(tx *gorm.DB, o *order, _ *line, _ *note) error {
				return tx.Omit("Order").Create(&line{OrderID: o.ID, Order: o}).Error
			}},
			"update": {table: "orders", keyed: true, write: func(tx *gorm.DB, _ *order, l *line, _ *note) error { return tx.Model(l).Update("qty", 5).Error }},
			"update, held": {table: "orders", keyed: true, write: func(tx *gorm.DB, o *order, l *line, _ *note) error {
				l.Order = o
				return tx.Omit("Order").Model(l).Update("qty", 5).Error
			}},
			"bulk": {table: "orders", keyed: true, write: func(tx *gorm.DB, _ *order, _ *line, n *note) error {
				return tx.Model(&note{}).Where("id = ?", n.ID).Update("text", "z").Error
			}},
			"delete": {table: "orders", keyed: true, write: func(tx *gorm.DB, _ *order, l *line, _ *note) error { return tx.Delete(l).Error }},
			"upsert": {table: "orders", keyed: true, write: func(tx *gorm.DB, _ *order, l *line, _ *note) error {
				return tx.Clauses(stand.UpdateAll).Create(l).Error
			}},
			"DoNothing": {table: "orders", keyed: true, write: func(tx *gorm.DB, o *order, _ *line, _ *note) error {
				return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&line{OrderID: o.ID}).Error
			}},
			"the part":          {table: "lines", keyed: true, write: func(tx *gorm.DB, _ *order, l *line, _ *note) error { return tx.Model(l).Update("qty", 5).Error }},
			"the part, deleted": {table: "notes", keyed: true, write: func(tx *gorm.DB, _ *order, _ *line, n *note) error { return tx.Delete(n).Error }},
			"the part, in bulk": {table: "notes", write: func(tx *gorm.DB, _ *order, _ *line, n *note) error {
				return tx.Model(&note{}).Where("id = ?", n.ID).Update("text", "z").Error
			}},
		} {
			o := stand.Made(t, db, order{})
			l, n := line{OrderID: o.ID}, note{OrderID: &o.ID}
			stand.Must(t, db.Create(&l).Error)
			stand.Must(t, db.Omit("Order").Create(&n).Error)
			attempts, was := 0, versionOf(t, db, o.ID)
			err := gormlock.Transaction(db, func(tx *gorm.DB) error {
				if attempts++; attempts > 1 {
					o, l, n = stand.Row[order](t, tx, o.ID), stand.Row[line](t, tx, l.ID), stand.Row[note](t, tx, n.ID)
				} else {
					o = stand.Row[order](t, tx, o.ID)
					stand.Must(t, db.Exec(rival[c.table], o.ID).Error)
				}
				err := c.write(tx, &o, &l, &n)
				if attempts == 1 {
					var stale *gormlock.StaleError
					if !errors.As(err, &stale) || stale.Table != c.table || !gormlock.IsRetryable(err) || c.keyed != (stale.PrimaryKey["id"] != nil) {
						t.Errorf("%s, %s: want a stale row of %s, got %v", level, name, c.table, err)
					}
					if err != nil && !strings.Contains(err.Error(), "40001") {
						t.Errorf("%s, %s: the server's own words are gone: %v", level, name, err)
					}
				}
				return err
			}, gormlock.Isolation(level), gormlock.Attempts(3))
			stand.Must(t, err)
			stand.Equal(t, name+": attempts", attempts, 2)
			moved := map[bool]int64{true: 2, false: 1}[c.table == "orders"]
			stand.Equal(t, name+": version", versionOf(t, db, o.ID), was+moved)
		}
	}
}
