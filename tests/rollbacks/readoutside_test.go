package rollbacks_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type reused struct {
	ID          int64
	Rival, Mine int64
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

// ways are how a transaction ends that keeps nothing: once the program calls the first, and perhaps the second later.
func endsOfReused() map[string]func(tx *gorm.DB, stop func()) (later func()) {
	return map[string]func(tx *gorm.DB, stop func()) func(){
		"rollback":           func(tx *gorm.DB, _ func()) func() { tx.Rollback(); return func() {} },
		"ctx":                func(_ *gorm.DB, stop func()) func() { stop(); return func() {} },
		"ctx, late rollback": func(tx *gorm.DB, stop func()) func() { stop(); return func() { tx.Rollback() } },
		"ctx, late commit":   func(tx *gorm.DB, stop func()) func() { stop(); return func() { tx.Commit() } },
	}
}

func twoRows(t *testing.T, db *gorm.DB) {
	t.Helper()
	stand.MustDo(t, db.Exec("TRUNCATE reuseds"))
	stand.MustDo(t, db.Create(&[]reused{{ID: 1}, {ID: 2}}))
}

func rivalWrites(t *testing.T, db *gorm.DB, id int64) {
	t.Helper()
	stand.MustDo(t, db.Exec("UPDATE reuseds SET rival = rival+1, version = version+1 WHERE id = ?", id))
}

// A struct that is read again outside of a transaction that had it has what is committed, whatever becomes of that transaction.
func TestRollback_structIsReadOutside(t *testing.T) {
	t.Parallel()
	before := map[string]func(t *testing.T, tx *gorm.DB, one *reused){
		"read": func(t *testing.T, tx *gorm.DB, one *reused) { stand.MustDo(t, tx.First(one, 2)) },
		"write, read": func(t *testing.T, tx *gorm.DB, one *reused) {
			stand.MustDo(t, tx.Model(&reused{}).Where("id = 1").Update("mine", 4))
			stand.MustDo(t, tx.First(one, 2))
		},
		"read, write": func(t *testing.T, tx *gorm.DB, one *reused) {
			stand.MustDo(t, tx.First(one, 2))
			stand.MustDo(t, tx.Model(&reused{}).Where("id = 1").Update("mine", 4))
		},
		"read of the written row": func(t *testing.T, tx *gorm.DB, one *reused) {
			stand.MustDo(t, tx.Model(&reused{}).Where("id = 1").Update("mine", 4))
			stand.MustDo(t, tx.First(one, 1))
		},
		"another row": func(t *testing.T, tx *gorm.DB, one *reused) {
			stand.MustDo(t, tx.First(one, 1))
			stand.MustDo(t, tx.Model(one).Update("mine", 4))
		},
	}
	stand.Beside(t, endsOfReused(), func(t *testing.T, end func(*gorm.DB, func()) func()) {
		db := stand.Versioned(t, []any{&reused{}}, pgtest.MaxConns(6))
		for name, had := range before {
			for _, first := range []string{"read, then end", "end, then read"} {
				for _, list := range []bool{false, true} {
					twoRows(t, db)
					all := make([]reused, 1, 2)
					one := &all[0]
					ctx, stop := context.WithCancel(t.Context())
					tx := db.WithContext(ctx).Begin()
					had(t, tx, one)
					read := func() {
						rivalWrites(t, db, 2)
						if list {
							stand.MustDo(t, db.Find(&all, 2))
						} else {
							*one = reused{}
							stand.MustDo(t, db.First(one, 2))
						}
					}
					var later func()
					if first == "read, then end" {
						read()
						later = end(tx, stop)
					} else {
						later = end(tx, stop)
						read()
					}
					one.Mine++
					err := db.Save(one).Error
					later()
					one.Mine++
					if again := db.Save(one).Error; err != nil || again != nil {
						t.Errorf("%s, %s, list %v: %v, then %v", name, first, list, err, again)
					}
					if row := stand.Row[reused](t, db, 2); row.Rival != 1 || row.Mine != one.Mine || row.Version != 4 {
						t.Errorf("%s, %s, list %v: the row is %+v", name, first, list, row)
					}
					stop()
					tx.Rollback()
				}
			}
		}
	})
}

// What a struct has of an undone transaction stays refused, if a query outside has read only a part of it, or another struct was moved there since.
func TestRollback_structIsNotReadOutside(t *testing.T) {
	t.Parallel()
	stand.Beside(t, endsOfReused(), func(t *testing.T, end func(*gorm.DB, func()) func()) {
		db := stand.Versioned(t, []any{&reused{}}, pgtest.MaxConns(6))
		for name, outside := range map[string]func(one, other *reused){
			"a part": func(one, _ *reused) { stand.MustDo(t, db.Select("id", "version").First(one)) },
			"moved": func(one, other *reused) {
				stand.MustDo(t, db.First(one))
				*one = *other
			},
			"moved there, another read": func(one, other *reused) {
				*one, *other = *other, reused{}
				stand.MustDo(t, db.First(other, 2))
			},
		} {
			twoRows(t, db)
			var all [2]reused
			one, other := &all[0], &all[1]
			ctx, stop := context.WithCancel(t.Context())
			tx := db.WithContext(ctx).Begin()
			stand.MustDo(t, tx.Exec("UPDATE reuseds SET mine = 7, version = version+1"))
			stand.MustDo(t, tx.First(one, 1))
			stand.MustDo(t, tx.First(other, 1))
			outside(one, other)
			later := end(tx, stop)
			later()
			if name == "a part" && one.Version != 1 && one.Version != -1 {
				t.Fatalf("%s: %+v", name, one)
			}
			if name != "a part" {
				pgtest.Eventually(t, "the row is free", func() bool {
					return db.Exec("UPDATE reuseds SET rival = rival+1, version = version+1 WHERE id = 1").Error == nil
				})
			}
			one.Mine++
			if err := db.Save(one).Error; err == nil {
				t.Errorf("%s: stored: %+v", name, one)
			}
			stop()
			tx.Rollback()
		}
	})
}

// A struct of an ended transaction is a buffer for several rows, before the program calls Rollback. None of them loses its version.
func TestRollback_structIsUsedForSeveralRows(t *testing.T) {
	t.Parallel()
	stand.Beside(t, endsOfReused(), func(t *testing.T, end func(*gorm.DB, func()) func()) {
		db := stand.Versioned(t, []any{&reused{}}, pgtest.MaxConns(6))
		for name, use := range map[string]func(p *reused, id int64){
			"read": func(p *reused, id int64) { *p = reused{}; stand.MustDo(t, db.First(p, id)) },
			"stored": func(p *reused, id int64) {
				*p = reused{}
				stand.MustDo(t, db.First(p, id))
				p.Mine++
				stand.MustDo(t, db.Save(p))
			},
			"created": func(p *reused, id int64) {
				stand.MustDo(t, db.Delete(&reused{}, id))
				*p = reused{ID: id}
				stand.MustDo(t, db.Create(p))
			},
		} {
			for _, order := range [][]int64{{1, 2}, {2, 1}, {1, 2, 1}, {1, 1, 2, 2}} {
				twoRows(t, db)
				ctx, stop := context.WithCancel(t.Context())
				tx := db.WithContext(ctx).Begin()
				var p, q reused
				stand.MustDo(t, tx.First(&p, 1))
				stand.MustDo(t, tx.Model(&p).Update("mine", 1))
				stand.MustDo(t, tx.First(&q, 2))
				stand.MustDo(t, tx.Model(&q).Update("mine", 1))
				later := end(tx, stop)
				for i, id := range order {
					if i == len(order)-1 {
						rivalWrites(t, db, id)
					}
					use(&p, id)
				}
				was := p
				later()
				stand.Equal(t, name+" after the end", p, was)
				p.Mine++
				stand.Must(t, db.Save(&p).Error)
				stand.Must(t, refusedIfMoved(db, &q))
				stop()
				tx.Rollback()
			}
		}
	})
}

// refusedIfMoved stores a struct that only the ended transaction had. It is at its old version, or is stale by now.
func refusedIfMoved(db *gorm.DB, q *reused) error {
	var now reused
	if err := db.First(&now, q.ID).Error; err != nil {
		return err
	}
	if err := db.Save(q).Error; err == nil && now.Version > 1 {
		return gorm.ErrInvalidData
	}
	return nil
}
