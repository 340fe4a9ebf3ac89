package roots_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// onlyWhere lets an upsert update what it finds under a condition.
func onlyWhere(sql string) clause.OnConflict {
	return clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, UpdateAll: true, Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: sql}}}}
}

// A root of which no part is written stays, and a struct of it is not compared: another writer who holds it meets no conflict.
func TestRoot_staysWhereNothingIsWritten(t *testing.T) {
	t.Parallel()
	exec := func(tx *gorm.DB, sql string, args ...any) *gorm.DB {
		tx.Session(&gorm.Session{NewDB: true}).Exec(sql, args...)
		return tx
	}
	for name, c := range map[string]struct {
		write    func(tx *gorm.DB, l *line, n *note, two *order) *gorm.DB
		rows     int64
		one, two int64 // how far they move
	}{
		"an empty map":             {write: func(tx *gorm.DB, l *line, _ *note, _ *order) *gorm.DB { return tx.Model(l).Updates(map[string]any{}) }},
		"an empty map, no version": {write: func(tx *gorm.DB, _ *line, n *note, _ *order) *gorm.DB { return tx.Model(n).Updates(map[string]any{}) }},
		"an empty struct":          {write: func(tx *gorm.DB, l *line, _ *note, _ *order) *gorm.DB { return tx.Model(l).Updates(line{}) }},
		"an empty struct, in bulk": {write: func(tx *gorm.DB, l *line, _ *note, _ *order) *gorm.DB {
			return tx.Model(&line{}).Where("id = ?", l.ID).Updates(line{})
		}},
		"the version alone": {write: func(tx *gorm.DB, l *line, _ *note, _ *order) *gorm.DB {
			return tx.Model(&line{ID: l.ID}).Updates(line{Version: l.Version})
		}},
		"an upsert under a condition": {write: func(tx *gorm.DB, l *line, _ *note, _ *order) *gorm.DB {
			return tx.Clauses(onlyWhere("lines.qty > 100")).Create(l)
		}},
		"an upsert under a condition, no version": {write: func(tx *gorm.DB, _ *line, n *note, _ *order) *gorm.DB {
			return tx.Clauses(onlyWhere("notes.text = 'no'")).Create(n)
		}},
		"an upsert under a condition that holds": {rows: 1, one: 1, two: 1, write: func(tx *gorm.DB, _ *line, n *note, two *order) *gorm.DB {
			n.OrderID = &two.ID
			return tx.Clauses(onlyWhere("notes.text = 'x'")).Create(n)
		}},
		"an upsert that does nothing": {write: func(tx *gorm.DB, l *line, _ *note, two *order) *gorm.DB {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&unique{Text: "taken", OrderID: l.OrderID})
		}},
		"a condition that does not hold": {write: func(tx *gorm.DB, l *line, _ *note, _ *order) *gorm.DB {
			return tx.Model(l).Where("qty > 100").Update("qty", 5)
		}},
		"a delete under such a condition": {write: func(tx *gorm.DB, _ *line, n *note, _ *order) *gorm.DB { return tx.Where("text = 'no'").Delete(n) }},
		"a part that is gone": {write: func(tx *gorm.DB, _ *line, n *note, _ *order) *gorm.DB {
			return exec(tx, "DELETE FROM notes WHERE id = ?", n.ID).Model(n).Update("text", "a")
		}},
		"a delete of one that is gone": {write: func(tx *gorm.DB, _ *line, n *note, _ *order) *gorm.DB {
			return exec(tx, "DELETE FROM notes WHERE id = ?", n.ID).Delete(n)
		}},

		"Save without the key": {rows: 1, one: 1, write: func(tx *gorm.DB, l *line, _ *note, two *order) *gorm.DB {
			l.OrderID, l.Qty = two.ID, 3
			return tx.Omit("OrderID").Save(l)
		}},
		"another column": {rows: 1, one: 1, write: func(tx *gorm.DB, l *line, _ *note, two *order) *gorm.DB {
			l.OrderID = two.ID
			return tx.Model(l).Update("qty", 5)
		}},
		"the key omitted": {rows: 1, one: 1, write: func(tx *gorm.DB, l *line, _ *note, two *order) *gorm.DB {
			return tx.Model(l).Omit("OrderID").Updates(map[string]any{"order_id": two.ID, "qty": 4})
		}},
		"the key not selected": {rows: 1, one: 1, write: func(tx *gorm.DB, l *line, _ *note, two *order) *gorm.DB {
			return tx.Model(l).Select("Qty").Updates(line{OrderID: two.ID, Qty: 8})
		}},
		"an upsert of another column": {rows: 1, one: 1, write: func(tx *gorm.DB, l *line, _ *note, two *order) *gorm.DB {
			l.OrderID = two.ID
			return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"qty"})}).Create(l)
		}},
		"a part that others moved": {rows: 1, two: 1, write: func(tx *gorm.DB, _ *line, n *note, two *order) *gorm.DB {
			return exec(tx, "UPDATE notes SET order_id = ? WHERE id = ?", two.ID, n.ID).Model(n).Update("text", "a")
		}},
		"a delete of one that others moved": {rows: 1, two: 1, write: func(tx *gorm.DB, _ *line, n *note, two *order) *gorm.DB {
			return exec(tx, "UPDATE notes SET order_id = ? WHERE id = ?", two.ID, n.ID).Delete(n)
		}},
		"one of two is gone": {rows: 1, two: 1, write: func(tx *gorm.DB, _ *line, n *note, two *order) *gorm.DB {
			other := note{OrderID: &two.ID}
			if err := tx.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Exec("INSERT INTO notes (id, text, order_id) VALUES (?, '', ?)", n.ID+1000, two.ID).Error; err != nil {
				return &gorm.DB{Error: err}
			}
			other.ID = n.ID + 1000
			return exec(tx, "DELETE FROM notes WHERE id = ?", n.ID).Delete([]*note{n, &other})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, append([]any{&unique{}}, models...), func(t *testing.T, db *gorm.DB) {
				for _, in := range []string{"implicit", "explicit"} {
					f := stand.Made(t, db, firm{})
					orders := []order{{FirmID: &f.ID}, {FirmID: &f.ID}}
					stand.Must(t, db.Create(&orders).Error)
					one, two := &orders[0], &orders[1]
					l, n := line{Qty: 1, OrderID: one.ID}, note{Text: "x", OrderID: &one.ID}
					stand.Must(t, db.Create(&l).Error)
					stand.Must(t, db.Omit("Order").Create(&n).Error)
					stand.Must(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&unique{Text: "taken", OrderID: two.ID}).Error)
					was := [3]int64{versionOf(t, db, one.ID), versionOf(t, db, two.ID), stand.Row[firm](t, db, f.ID).Version}
					var rows int64
					stand.Must(t, stand.Begin[in](db, func(tx *gorm.DB) error {
						done := c.write(tx, &l, &n, two)
						rows = done.RowsAffected
						return done.Error
					}))
					stand.Equal(t, in+": rows", rows, c.rows)
					stand.Equal(t, in+": the orders and their firm", [3]int64{versionOf(t, db, one.ID), versionOf(t, db, two.ID), stand.Row[firm](t, db, f.ID).Version},
						[3]int64{was[0] + c.one, was[1] + c.two, was[2] + min(1, c.one+c.two)})
				}
			})
		})
	}
}

// unique is a part that a second unique column may keep out.
type unique struct {
	ID      int64
	Text    string `gorm:"unique"`
	OrderID int64
	Order   *order `gormlock:"root"`
}

// A stale struct of a root is no conflict where its part is not written.
func TestRoot_staleButNotConcerned(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{})
		stale := o
		l, n := line{OrderID: o.ID}, note{OrderID: &o.ID}
		stand.Must(t, db.Create(&l).Error)
		stand.Must(t, db.Omit("Order").Create(&n).Error)
		l.Order, n.Order = &stale, stale
		stand.Must(t, db.Omit("Order").Model(&l).Updates(map[string]any{}).Error)
		stand.Must(t, db.Model(&l).Where("qty > 100").Update("qty", 1).Error)
		stand.Must(t, db.Clauses(onlyWhere("lines.qty > 100")).Create(&l).Error)
		stand.MustStale(t, db.Clauses(onlyWhere("lines.qty = 0")).Omit("Order").Create(&l).Error)
		stand.MustStale(t, db.Model(&l).Where("qty = 0").Update("qty", 1).Error)
		stand.MustStale(t, db.Model(&l).Update("qty", 1).Error)
		stand.MustStale(t, db.Where("text = ''").Delete(&n).Error)
		// The root that a part leaves is compared too.
		two := stand.Made(t, db, order{})
		l.OrderID = two.ID
		stand.MustStale(t, db.Omit("Order").Save(&l).Error)
		stand.Must(t, db.First(&stale, o.ID).Error)
		stand.Must(t, db.Omit("Order").Save(&l).Error)
		stand.Equal(t, "the root that it left", stale.Version, versionOf(t, db, o.ID))
	})
}

// A root is locked before its parts: a writer of the root, who goes on to its parts, meets no deadlock.
func TestRoot_isLockedBeforeItsParts(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, models)
	for name, write := range map[string]func(tx *gorm.DB, l *line) error{
		"update":          func(tx *gorm.DB, l *line) error { return tx.Model(l).Update("qty", 5).Error },
		"save":            func(tx *gorm.DB, l *line) error { return tx.Save(l).Error },
		"save of a slice": func(tx *gorm.DB, l *line) error { return tx.Model([]*line{l}).Update("qty", 5).Error },
		"delete":          func(tx *gorm.DB, l *line) error { return tx.Delete(l).Error },
	} {
		o := stand.Made(t, db, order{})
		l := stand.Made(t, db, line{OrderID: o.ID})
		stand.Must(t, db.First(&o, o.ID).Error)
		done := make(chan error, 1)
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, gormlock.Touch(tx, &o))
			mine := l
			go func() { done <- write(db, &mine) }()
			var pid int
			stand.Must(t, tx.Raw("SELECT pg_backend_pid()").Scan(&pid).Error)
			pgtest.Eventually(t, "the writer waits", func() bool {
				var waiting int64
				stand.Must(t, db.Raw("SELECT count(*) FROM pg_stat_activity WHERE ? = ANY(pg_blocking_pids(pid))", pid).Scan(&waiting).Error)
				return waiting > 0
			})
			return tx.Exec("UPDATE lines SET qty = 9 WHERE id = ?", l.ID).Error
		}))
		if err := <-done; err != nil && !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
