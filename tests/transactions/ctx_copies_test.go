package transactions_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// endings are the ways in which a transaction ends that stores nothing. Each calls then when it has, and before the program rolls it back.
func endings(t *testing.T, db *gorm.DB, body func(tx *gorm.DB) error, then func()) map[string]func() {
	t.Helper()
	pool, err := db.DB()
	stand.Must(t, err)
	within := func(run func(db *gorm.DB, fn func(tx *gorm.DB) error)) func() {
		return func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			run(db.WithContext(ctx), func(tx *gorm.DB) error {
				stand.Must(t, body(tx))
				cancel()
				pgtest.Eventually(t, "the rollback", func() bool { return pool.Stats().InUse == 0 })
				then()
				return nil
			})
		}
	}
	return map[string]func(){
		"Rollback": func() {
			tx := db.Begin()
			stand.Must(t, body(tx))
			stand.MustDo(t, tx.Rollback())
			then()
		},
		"ctx, in Transaction": within(func(db *gorm.DB, fn func(tx *gorm.DB) error) { _ = db.Transaction(fn) }),
		"ctx, in gormlock.Transaction": within(func(db *gorm.DB, fn func(tx *gorm.DB) error) {
			_ = gormlock.Transaction(db, fn)
		}),
		"ctx, before a Rollback": within(func(db *gorm.DB, fn func(tx *gorm.DB) error) {
			tx := db.Begin()
			defer tx.Rollback()
			_ = fn(tx)
		}),
	}
}

// TestCtxEndsATransaction_copies: the transaction had several structs of a row. The end of its ctx leaves in each what a rollback does, whichever the
// program uses next, and none overwrites the row of a rival.
func TestCtxEndsATransaction_copies(t *testing.T) {
	t.Parallel()
	type all struct {
		a, b stand.Account
		list []stand.Account
	}
	for name, write := range map[string]func(tx *gorm.DB, s *all) error{
		"Save":   func(tx *gorm.DB, s *all) error { return tx.Save(&s.b).Error },
		"Update": func(tx *gorm.DB, s *all) error { return tx.Model(&s.b).Update("balance", 3).Error },
		"Returning": func(tx *gorm.DB, s *all) error {
			return tx.Model(&s.b).Clauses(clause.Returning{}).Update("balance", 3).Error
		},
		"a slice": func(tx *gorm.DB, s *all) error {
			s.list, s.b = []stand.Account{s.b, {Balance: 7}}, stand.Account{}
			return tx.Save(&s.list).Error
		},
		"an upsert": func(tx *gorm.DB, s *all) error {
			return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&s.b).Error
		},
		"Touch":  func(tx *gorm.DB, s *all) error { return gormlock.Touch(tx, &s.b) },
		"Delete": func(tx *gorm.DB, s *all) error { return tx.Delete(&s.b).Error },
		"SaveMerged": func(tx *gorm.DB, s *all) error {
			s.b.Balance = 77
			return gormlock.SaveMerged(tx, &s.b, &s.a)
		},
		"refused": func(tx *gorm.DB, s *all) error {
			stand.MustStale(t, tx.Clauses(gormlock.ExpectVersion(99)).Save(&s.b).Error)
			return nil
		},
		"refused, behind a savepoint": func(tx *gorm.DB, s *all) error {
			_ = tx.Transaction(func(tx *gorm.DB) error { _ = tx.Save(&s.b); return errors.New("no") })
			return nil
		},
		"read again": func(tx *gorm.DB, s *all) error { return errors.Join(tx.First(&s.b).Error, tx.Save(&s.b).Error) },
		"a copy of what was read": func(tx *gorm.DB, s *all) error {
			var read stand.Account
			err := tx.First(&read, s.a.ID).Error
			s.b = read
			return errors.Join(err, tx.Save(&s.b).Error)
		},
		"twice": func(tx *gorm.DB, s *all) error {
			err := tx.Save(&s.b).Error
			s.list = []stand.Account{{ID: 9}, s.b}
			return errors.Join(err, tx.Save(&s.list[1]).Error)
		},
		"swapped": func(tx *gorm.DB, s *all) error {
			s.list, s.b = []stand.Account{{Balance: 7}, s.b}, stand.Account{}
			err := tx.Save(&s.list).Error
			s.list[0], s.list[1] = s.list[1], s.list[0]
			return err
		},
		"swapped, written again": func(tx *gorm.DB, s *all) error {
			s.list, s.b = []stand.Account{{Balance: 7}, s.b}, stand.Account{}
			err := tx.Save(&s.list).Error
			s.list[0], s.list[1] = s.list[1], s.list[0]
			return errors.Join(err, tx.Save(&s.list[0]).Error)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&stand.Account{}})
			run := func(how string, changed bool) (versions []int64) {
				stand.MustDo(t, db.Exec("TRUNCATE accounts"))
				made, s := stand.Made(t, db, stand.Account{Balance: 1}), &all{}
				endings(t, db, func(tx *gorm.DB) error {
					err := tx.First(&s.a, made.ID).Error
					s.a.Balance = 2
					err = errors.Join(err, tx.Save(&s.a).Error)
					if s.b = s.a; changed {
						s.b.Balance = 9
					}
					return errors.Join(err, write(tx, s))
				}, func() {
					structs := []*stand.Account{&s.b, &s.a}
					for i := range s.list {
						structs = append(structs, &s.list[i])
					}
					for range 3 {
						stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 100, version = version + 1"))
						for _, one := range structs {
							if one.ID != made.ID {
								continue
							}
							before := *one
							err := db.Model(one).Update("balance", -1).Error
							if !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
								t.Errorf("%s: %+v: %v", how, before, err)
							}
							versions = append(versions, one.Version)
						}
					}
					stand.Equal(t, how, stand.Row[stand.Account](t, db, made.ID).Balance, 100)
				})[how]()
				return versions
			}
			for _, changed := range []bool{false, true} {
				want := run("Rollback", changed)
				for _, how := range []string{"ctx, in Transaction", "ctx, in gormlock.Transaction", "ctx, before a Rollback"} {
					got := run(how, changed)
					for i := range want {
						if i >= len(got) || got[i] != want[i] {
							t.Errorf("%s, changed %v: %d, a rollback leaves %d", how, changed, got, want)
							break
						}
					}
				}
			}
		})
	}
}

// TestCtxEndsATransaction_copiedByGORM: GORM has copied a child to where another one was, in an association of the struct.
func TestCtxEndsATransaction_copiedByGORM(t *testing.T) {
	t.Parallel()
	full := &gorm.Session{FullSaveAssociations: true}
	remove := func(tx *gorm.DB, o *stand.LinedOrder) error {
		return tx.Model(o).Association("Lines").Delete(&o.Lines[0])
	}
	add := func(tx *gorm.DB, o *stand.LinedOrder) error {
		return tx.Model(o).Association("Lines").Append(&stand.LinedLine{Qty: 1})
	}
	save := func(tx *gorm.DB, o *stand.LinedOrder) error { return tx.Session(full).Save(o).Error }
	read := func(tx *gorm.DB, o *stand.LinedOrder) error { return tx.First(&stand.LinedLine{}, o.Lines[0].ID).Error }
	own := func(tx *gorm.DB, o *stand.LinedOrder) error {
		var list []stand.LinedLine
		for _, line := range o.Lines {
			if err := tx.Save(&line).Error; err != nil {
				return err
			}
			list = append(list, line)
		}
		o.Lines = list
		return tx.Save(&o.Lines).Error
	}
	type step = func(tx *gorm.DB, o *stand.LinedOrder) error
	for name, steps := range map[string][]step{
		"Delete":              {save, remove},
		"Delete, read":        {save, remove, read},
		"Append":              {save, add},
		"Append, read":        {save, add, read},
		"Append, Delete":      {save, add, remove, read},
		"a list of their own": {save, own},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}})
			for _, how := range []string{"Rollback", "ctx, in Transaction", "ctx, in gormlock.Transaction", "ctx, before a Rollback"} {
				made, o := stand.Made(t, db, stand.LinedOrder{Title: "t", Lines: []stand.LinedLine{{Qty: 1}, {Qty: 2}, {Qty: 3}}}), stand.LinedOrder{}
				endings(t, db, func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Preload("Lines").First(&o, made.ID))
					for _, do := range steps {
						if err := do(tx, &o); err != nil {
							return err
						}
					}
					return nil
				}, func() {
					for range 3 {
						stand.MustDo(t, db.Exec("UPDATE lined_lines SET qty = 100, version = version + 1"))
						for i := range o.Lines {
							before, of := o.Lines[i], int64(0)
							if db.Raw("SELECT count(*) FROM lined_lines WHERE id = ?", before.ID).Scan(&of); of == 0 {
								continue // it was not stored
							}
							if err := db.Save(&o.Lines[i]).Error; err == nil {
								t.Errorf("%s: line %d: %+v overwrites the rival's", how, i, before)
							}
						}
					}
				})[how]()
			}
		})
	}
}
