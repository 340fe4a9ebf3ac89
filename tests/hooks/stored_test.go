package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	// acting does in its hooks what a test says.
	acting struct {
		Before func(tx *gorm.DB) error `gorm:"-"`
		After  func(tx *gorm.DB) error `gorm:"-"`
	}
	plainActor struct {
		ID     int64
		Amount int64
		acting `gorm:"-"`
	}
	actor struct {
		ID      int64
		Amount  int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
		acting  `gorm:"-"`
	}
)

func (a *acting) BeforeSave(tx *gorm.DB) error   { return act(a.Before, tx) }
func (a *acting) AfterSave(tx *gorm.DB) error    { return act(a.After, tx) }
func (a *acting) BeforeDelete(tx *gorm.DB) error { return act(a.Before, tx) }
func (a *acting) AfterDelete(tx *gorm.DB) error  { return act(a.After, tx) }

func act(do func(tx *gorm.DB) error, tx *gorm.DB) error {
	if do == nil {
		return nil
	}
	return do(tx)
}

// ways are the ways in which a program runs its transactions.
var ways = map[string]func(db *gorm.DB, fn func(tx *gorm.DB) error) error{
	"as it comes":        func(db *gorm.DB, fn func(tx *gorm.DB) error) error { return db.Transaction(fn) },
	"plain transactions": func(db *gorm.DB, fn func(tx *gorm.DB) error) error { return db.Transaction(fn) },
	"one connection": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		return db.Connection(func(c *gorm.DB) error { return c.Transaction(fn) })
	},
	"prepared": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
		return db.Session(&gorm.Session{PrepareStmt: true}).Transaction(fn)
	},
}

// openFor opens a database of its own for one of them, with a bill that a rival has changed.
func openFor(t *testing.T, way string) (db *gorm.DB, stale *bill) {
	db = stand.Open(t)
	if way == "plain transactions" {
		db = pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.PlainTransactions())))
	}
	stand.Must(t, db.AutoMigrate(&bill{}, &audit{}, &plainActor{}, &actor{}, &billed{}, &owner{}, &line{}, &found{}))
	stale = &bill{Total: 1}
	stand.Must(t, db.Create(stale).Error)
	stand.Must(t, db.Model(&bill{}).Where("id = ?", stale.ID).Update("total", 2).Error)
	return db, stale
}

// actors are the statements of which the hooks are.
var actors = map[string]func(tx *gorm.DB, id int64, a acting) error{
	"Create":         func(tx *gorm.DB, _ int64, a acting) error { return tx.Create(&actor{Amount: 8, acting: a}).Error },
	"Create of some": func(tx *gorm.DB, _ int64, a acting) error { return tx.Create([]*actor{{Amount: 8, acting: a}}).Error },
	"Save": func(tx *gorm.DB, id int64, a acting) error {
		return tx.Save(&actor{ID: id, Amount: 8, Version: 1, acting: a}).Error
	},
	"Update": func(tx *gorm.DB, id int64, a acting) error {
		return tx.Model(&actor{ID: id, Version: 1, acting: a}).Update("amount", 8).Error
	},
	"Delete": func(tx *gorm.DB, id int64, a acting) error {
		return tx.Delete(&actor{ID: id, Version: 1, acting: a}).Error
	},
	"plain Create": func(tx *gorm.DB, _ int64, a acting) error { return tx.Create(&plainActor{Amount: 8, acting: a}).Error },
	"plain Save": func(tx *gorm.DB, id int64, a acting) error {
		return tx.Save(&plainActor{ID: id, Amount: 8, acting: a}).Error
	},
	"plain Save of some": func(tx *gorm.DB, id int64, a acting) error {
		return tx.Save([]*plainActor{{ID: id, Amount: 8, acting: a}}).Error
	},
	"plain Update": func(tx *gorm.DB, id int64, a acting) error {
		return tx.Model(&plainActor{ID: id, acting: a}).Update("amount", 8).Error
	},
	"plain Delete": func(tx *gorm.DB, id int64, a acting) error { return tx.Delete(&plainActor{ID: id, acting: a}).Error },
	"gorm.G": func(tx *gorm.DB, _ int64, a acting) error {
		return gorm.G[plainActor](tx).Create(context.Background(), &plainActor{Amount: 8, acting: a})
	},
}

var errBilled = errors.New("the bill was changed meanwhile")

// refusals are what gormlock refuses in a hook, and what the hook makes of it.
var refusals = map[string]func(tx *gorm.DB, b *bill) error{
	"stale":     func(tx *gorm.DB, b *bill) error { return tx.Model(b).Update("total", 9).Error },
	"stale, %w": func(tx *gorm.DB, b *bill) error { return fmt.Errorf("bill: %w", tx.Model(b).Update("total", 9).Error) },
	"stale, %v": func(tx *gorm.DB, b *bill) error { return fmt.Errorf("bill: %v", tx.Model(b).Update("total", 9).Error) }, //nolint:errorlint // as programs do
	"stale, translated": func(tx *gorm.DB, b *bill) error {
		if err := tx.Model(b).Update("total", 9).Error; !errors.Is(err, gormlock.ErrStale) {
			return fmt.Errorf("not stale: %w", err)
		}
		return errBilled
	},
	"stale, in a savepoint, translated": func(tx *gorm.DB, b *bill) error {
		if err := tx.Transaction(func(tx *gorm.DB) error { return tx.Model(b).Update("total", 9).Error }); !errors.Is(err, gormlock.ErrStale) {
			return fmt.Errorf("not stale: %w", err)
		}
		return errBilled
	},
	"gone, translated": func(tx *gorm.DB, _ *bill) error {
		return errors.Join(errBilled, as(tx.Model(&bill{ID: 99, Version: 1}).Update("total", 9).Error))
	},
	"Touch, translated":         func(tx *gorm.DB, b *bill) error { return as(gormlock.Touch(tx, b)) },
	"VerifyVersion, translated": func(tx *gorm.DB, b *bill) error { return as(gormlock.VerifyVersion(tx, b)) },
	"SaveMerged, translated": func(tx *gorm.DB, b *bill) error {
		mine := *b
		mine.Total = 77
		return as(gormlock.SaveMerged(tx, &mine, b))
	},
	"Transaction, translated": func(tx *gorm.DB, b *bill) error {
		return as(gormlock.Transaction(tx, func(tx *gorm.DB) error { return tx.Model(b).Update("total", 9).Error }))
	},
	"a lock that others hold": func(tx *gorm.DB, b *bill) error {
		return tx.Scopes(gormlock.WithXactLock(gormlock.Key("held"), gormlock.Try())).Model(&bill{}).Where("id = ?", b.ID).Update("total", 9).Error
	},
	"AcquireXactLock, translated": func(tx *gorm.DB, _ *bill) error {
		return as(gormlock.AcquireXactLock(tx, []lockkey.Key{gormlock.Key("held")}, gormlock.Try()))
	},
	"a wrong Select": func(tx *gorm.DB, b *bill) error { return tx.Model(b).Select("nonsense").Update("total", 9).Error },
	"nothing is set": func(tx *gorm.DB, b *bill) error {
		return as(tx.Clauses(gormlock.ExpectVersion(1)).Model(b).Updates(map[string]any{}).Error)
	},
}

// as is what a hook returns that does not tell its caller of gormlock.
func as(err error) error {
	if err == nil {
		return nil
	}
	return errBilled
}

// inTransaction runs a statement between two others, with a lock that others hold, and drops its error.
func inTransaction(t *testing.T, db *gorm.DB, way string, write func(tx *gorm.DB) error) (dropped, second, commit error) {
	t.Helper()
	holder := db.Begin()
	defer holder.Rollback()
	stand.Must(t, gormlock.AcquireXactLock(holder, []lockkey.Key{gormlock.Key("held")}))
	commit = ways[way](db, func(tx *gorm.DB) error {
		stand.Must(t, tx.Create(&audit{ID: 1001}).Error)
		dropped = write(tx)
		second = tx.Create(&audit{ID: 1002}).Error
		return nil
	})
	return dropped, second, commit
}

// count is how many rows the statement between the two others has left, and how many these have.
func count(t *testing.T, db *gorm.DB) (left, around int64) {
	t.Helper()
	stand.Must(t, db.Raw(`SELECT (SELECT count(*) FROM actors WHERE amount <> 1) + (SELECT count(*) FROM plain_actors WHERE amount <> 1) +
		(SELECT count(*) FROM audits WHERE id < 1000) + (SELECT count(*) FROM billeds) + (SELECT count(*) FROM lines) + (SELECT count(*) FROM owners WHERE id < 500) + (SELECT count(*) FROM founds WHERE amount <> 1) + abs(2 - (SELECT count(*) FROM actors)) * 10 + abs(2 - (SELECT count(*) FROM plain_actors)) * 10`).Scan(&left).Error)
	stand.Must(t, db.Raw(`SELECT count(*) FROM audits WHERE id > 1000`).Scan(&around).Error)
	return left, around
}

// eachWay runs a test in each of the ways, with two rows of each kind.
func eachWay(t *testing.T, test func(t *testing.T, db *gorm.DB, way string, stale *bill)) {
	for way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			db, stale := openFor(t, way)
			test(t, db, way, stale)
		})
	}
}

// isSpared says what need not be tried: all statements with two refusals, and all refusals with three statements, are enough.
func isSpared(refusal, statement string) bool {
	return refusal != "stale" && refusal != "stale, translated" && statement != "Save" && statement != "plain Create" && statement != "plain Update"
}

func reset(t *testing.T, db *gorm.DB) {
	t.Helper()
	stand.Must(t, db.Exec("DELETE FROM audits; DELETE FROM actors; DELETE FROM plain_actors; DELETE FROM billeds; DELETE FROM lines; DELETE FROM owners; DELETE FROM founds").Error)
	stand.Must(t, db.Exec("INSERT INTO actors (id, amount, version) VALUES (500, 1, 1), (501, 1, 2)").Error)
	stand.Must(t, db.Exec("INSERT INTO owners (id) VALUES (500), (501); INSERT INTO founds (id, amount) VALUES (500, 1)").Error)
	stand.Must(t, db.Exec("INSERT INTO plain_actors (id, amount) VALUES (500, 1), (501, 1)").Error)
}

// A hook whose only write is refused has stored nothing: a program that goes on without the statement commits the others.
func TestHook_whoseOnlyWriteIsRefused(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, db *gorm.DB, way string, stale *bill) {
		for what, refused := range refusals {
			for name, write := range actors {
				if isSpared(what, name) {
					continue
				}
				reset(t, db)
				b := *stale
				dropped, second, commit := inTransaction(t, db, way, func(tx *gorm.DB) error {
					return write(tx, 500, acting{Before: func(tx *gorm.DB) error { return refused(tx, &b) }})
				})
				left, around := count(t, db)
				if dropped == nil || second != nil || commit != nil || left != 0 || around != 2 {
					t.Errorf("%s, %s: %v, then %v, the commit %v; %d left, %d of 2", what, name, dropped, second, commit, left, around)
				}
			}
		}
	})
}

// A statement that has stored something, and in whose hooks gormlock has refused something, is not committed, whatever the hook makes of the
// error. A hook that handles the refusal keeps its statement.
func TestHook_thatTranslatesARefusal(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, db *gorm.DB, way string, stale *bill) {
		for what, refused := range refusals {
			for name, write := range actors {
				if isSpared(what, name) {
					continue
				}
				for when, hooks := range map[string]func(handles bool) acting{
					"after": func(handles bool) acting {
						return acting{After: func(tx *gorm.DB) error {
							b := *stale
							if err := refused(tx, &b); !handles {
								return err
							}
							return nil
						}}
					},
					"before": func(handles bool) acting {
						return acting{Before: func(tx *gorm.DB) error {
							b := *stale
							stand.Must(t, tx.Create(&audit{}).Error)
							if err := refused(tx, &b); !handles {
								return err
							}
							return nil
						}}
					},
				} {
					reset(t, db)
					dropped, _, commit := inTransaction(t, db, way, func(tx *gorm.DB) error { return write(tx, 500, hooks(false)) })
					if left, around := count(t, db); dropped == nil || commit == nil || left != 0 || around != 0 {
						t.Errorf("%s %s, %s: %v, the commit %v; %d left, %d of 0", when, what, name, dropped, commit, left, around)
					}
					reset(t, db)
					dropped, second, commit := inTransaction(t, db, way, func(tx *gorm.DB) error { return write(tx, 500, hooks(true)) })
					if left, around := count(t, db); dropped != nil || second != nil || commit != nil || left == 0 || around != 2 {
						t.Errorf("handled %s %s, %s: %v, then %v, the commit %v; %d left, %d of 2", when, what, name, dropped, second, commit, left, around)
					}
				}
			}
		}
	})
}

// What a hook did before its own row was found stale counts if it has stored something, or nobody knows whether it has.
func TestHook_beforeAStaleRow(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, db *gorm.DB, way string, stale *bill) {
		stand.Must(t, db.Exec("CREATE FUNCTION store() RETURNS int LANGUAGE sql AS 'INSERT INTO audits DEFAULT VALUES RETURNING 1'").Error)
		for what, does := range map[string]struct {
			hook   func(tx *gorm.DB) error
			stores bool
		}{
			"nothing":                  {func(*gorm.DB) error { return nil }, false},
			"reads":                    {func(tx *gorm.DB) error { return tx.Find(&[]bill{}).Error }, false},
			"locks a row":              {func(tx *gorm.DB) error { return tx.Clauses(gormlock.RowLock(gormlock.ForUpdate)).Find(&[]bill{}).Error }, false},
			"locks a key":              {func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{gormlock.Key("free")}) }, false},
			"updates no row":           {func(tx *gorm.DB) error { return tx.Model(&plainActor{}).Where("id = 0").Update("amount", 5).Error }, false},
			"updates no row by a text": {func(tx *gorm.DB) error { return tx.Exec("UPDATE plain_actors SET amount = 5 WHERE id = 0").Error }, false},
			"deletes no row":           {func(tx *gorm.DB) error { return tx.Where("id = 0").Delete(&plainActor{}).Error }, false},
			"inserts no row": {func(tx *gorm.DB) error {
				return tx.Exec("INSERT INTO plain_actors (id, amount) VALUES (500, 5) ON CONFLICT DO NOTHING").Error
			}, false},
			"swallows a refusal": {func(tx *gorm.DB) error { b := *stale; _ = tx.Model(&b).Update("total", 5); return nil }, false},
			"goes back": {func(tx *gorm.DB) error {
				_ = tx.Transaction(func(tx *gorm.DB) error { stand.Must(t, tx.Create(&audit{}).Error); return errBilled })
				return nil
			}, false},
			"updates a row":           {func(tx *gorm.DB) error { return tx.Model(&plainActor{ID: 501}).Update("amount", 5).Error }, true},
			"updates a row by a text": {func(tx *gorm.DB) error { return tx.Exec("UPDATE plain_actors SET amount = 5 WHERE id = 501").Error }, true},
			"returns a row": {func(tx *gorm.DB) error {
				return tx.Raw("UPDATE plain_actors SET amount = 5 WHERE id = 501 RETURNING id").Scan(new(int64)).Error
			}, true},
			"returns a row of Row": {func(tx *gorm.DB) error {
				return tx.Raw("UPDATE plain_actors SET amount = 5 WHERE id = 501 RETURNING id").Row().Scan(new(int64))
			}, true},
			"scans what returns none": {func(tx *gorm.DB) error {
				return tx.Raw("UPDATE plain_actors SET amount = 5 WHERE id = 501").Scan(new(int64)).Error
			}, true},
			"creates":          {func(tx *gorm.DB) error { return tx.Create(&audit{}).Error }, true},
			"deletes":          {func(tx *gorm.DB) error { return tx.Delete(&plainActor{ID: 501}).Error }, true},
			"calls a function": {func(tx *gorm.DB) error { return tx.Raw("SELECT store()").Scan(new(int64)).Error }, true},
			"several commands": {func(tx *gorm.DB) error {
				return tx.Exec("INSERT INTO audits DEFAULT VALUES; UPDATE plain_actors SET amount = 5 WHERE id = 0").Error
			}, true},
			"in a savepoint": {func(tx *gorm.DB) error {
				return tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&audit{}).Error })
			}, true},
			"with": {func(tx *gorm.DB) error {
				return tx.Exec("WITH a AS (INSERT INTO audits DEFAULT VALUES RETURNING id) UPDATE plain_actors SET amount = 5 WHERE id = 0").Error
			}, true},
		} {
			for name, write := range map[string]func(tx *gorm.DB, a acting) error{
				"Save": func(tx *gorm.DB, a acting) error {
					return tx.Save(&actor{ID: 501, Amount: 8, Version: 1, acting: a}).Error
				},
				"Update": func(tx *gorm.DB, a acting) error {
					return tx.Model(&actor{ID: 501, Version: 1, acting: a}).Update("amount", 8).Error
				},
				"Delete": func(tx *gorm.DB, a acting) error { return tx.Delete(&actor{ID: 501, Version: 1, acting: a}).Error },
				"Save of some": func(tx *gorm.DB, a acting) error {
					return tx.Save([]*actor{{ID: 501, Amount: 8, Version: 1, acting: a}}).Error
				},
			} {
				reset(t, db)
				dropped, _, commit := inTransaction(t, db, way, func(tx *gorm.DB) error { return write(tx, acting{Before: does.hook}) })
				left, around := count(t, db)
				if !errors.Is(dropped, gormlock.ErrStale) || does.stores != (commit != nil) || left != 0 || does.stores != (around == 0) {
					t.Errorf("%s, %s: %v, the commit %v; %d left, %d of 2", what, name, dropped, commit, left, around)
				}
			}
		}
	})
}
