package transactions_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// failing are ways in which a statement of a transaction fails. The server takes back what the transaction did, and frees its rows,
// before the program rolls back.
var failing = map[string]func(tx *gorm.DB, a *stand.Account) error{
	"a duplicate":       func(tx *gorm.DB, a *stand.Account) error { return tx.Create(&stand.Account{ID: a.ID}).Error },
	"syntax":            func(tx *gorm.DB, _ *stand.Account) error { return tx.Exec("UPDAT accounts").Error },
	"a read":            func(tx *gorm.DB, _ *stand.Account) error { return tx.Raw("SELECT 1/0").Scan(new(int)).Error },
	"a read of structs": func(tx *gorm.DB, a *stand.Account) error { return tx.Where("1/0 = 1").First(a).Error },
	"late rows": func(tx *gorm.DB, _ *stand.Account) error {
		return tx.Raw("SELECT 1/(3 - n) FROM generate_series(1, 5) n").Scan(new([]int)).Error
	},
	"a text of two": func(tx *gorm.DB, _ *stand.Account) error { return tx.Exec("SELECT 1; SELECT 1/0").Error },
	"the struct itself": func(tx *gorm.DB, a *stand.Account) error {
		return tx.Model(a).Update("balance", gorm.Expr("1/0")).Error
	},
	"a slice with it": func(tx *gorm.DB, a *stand.Account) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"balance": gorm.Expr("1/0")})}).
			Create([]*stand.Account{a, {ID: 77}}).Error
	},
	"its upsert": func(tx *gorm.DB, a *stand.Account) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"balance": gorm.Expr("1/0")})}).Create(a).Error
	},
	"its deletion": func(tx *gorm.DB, a *stand.Account) error { return tx.Where("1/0 = 1").Delete(a).Error },
}

// killing are ways in which the server ends the session of a transaction.
var killing = map[string]func(tx, db *gorm.DB) error{
	"terminated": func(tx, db *gorm.DB) error {
		var pid int
		return errors.Join(tx.Raw("SELECT pg_backend_pid()").Scan(&pid).Error, db.Exec("SELECT pg_terminate_backend(?, 10000)", pid).Error, tx.Exec("SELECT 1").Error)
	},
	"idle": func(tx, db *gorm.DB) error {
		return errors.Join(tx.Exec("SET LOCAL idle_in_transaction_session_timeout = 1").Error, db.Exec("SELECT pg_sleep(0.2)").Error, tx.Exec("SELECT 1").Error)
	},
}

// TestAborted: the struct of a transaction that the server has aborted, and the program has not rolled back yet, has no version that was
// never committed.
func TestAborted(t *testing.T) {
	t.Parallel()
	ends := map[string]func(tx, db *gorm.DB, a *stand.Account) error{}
	for name, fails := range failing {
		ends[name] = func(tx, _ *gorm.DB, a *stand.Account) error { return fails(tx, a) }
	}
	for name, kills := range killing {
		ends[name] = func(tx, db *gorm.DB, _ *stand.Account) error { return kills(tx, db) }
	}
	for name, ends := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&stand.Account{}})
			for id, write := range writing {
				for how, begin := range map[string]func(fn func(tx *gorm.DB) error) error{
					"Transaction": func(fn func(tx *gorm.DB) error) error { return db.Transaction(fn) },
					"Begin": func(fn func(tx *gorm.DB) error) error {
						tx := db.Begin()
						defer tx.Rollback()
						return fn(tx)
					},
					"nested": func(fn func(tx *gorm.DB) error) error {
						return db.Transaction(func(tx *gorm.DB) error { return tx.Transaction(fn) })
					},
					"gormlock": func(fn func(tx *gorm.DB) error) error { return gormlock.Transaction(db, fn, gormlock.Attempts(1)) },
					"a pool of others": func(fn func(tx *gorm.DB) error) error {
						wrapped := db.WithContext(t.Context())
						wrapped.Statement.ConnPool = &stand.WrappedPool{ConnPool: db.ConnPool}
						return gormlock.Transaction(wrapped, fn, gormlock.Attempts(1))
					},
				} {
					if name == "late rows" && how == "a pool of others" {
						continue // what GORM reads when its statement has ended is not heard there
					}
					stand.MustDo(t, db.Exec("TRUNCATE accounts"))
					a := stand.Account{ID: 1, Balance: 100}
					stand.MustDo(t, db.Create(&a))
					var read stand.Account
					_ = begin(func(tx *gorm.DB) error {
						stand.Must(t, write(tx, &a))
						stand.Must(t, tx.First(&read, 1).Error)
						err := ends(tx, db, &a)
						if err == nil {
							t.Fatal("it did not fail")
						}
						stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 777, version = version + 1"))
						for _, of := range []*stand.Account{&a, &read} {
							if stale := db.Save(of).Error; !errors.Is(stale, gormlock.ErrStale) && !errors.Is(stale, gormlock.ErrVersionMissing) {
								t.Errorf("%s, %s: %v", id, how, stale)
							}
						}
						stand.Equal(t, fmt.Sprint(id, how), stand.Row[stand.Account](t, db, 1).Balance, 777)
						return err
					})
				}
			}
		})
	}
}

// writing are ways to give a struct the version of its row in a transaction.
var writing = map[string]func(tx *gorm.DB, a *stand.Account) error{
	"Save":   func(tx *gorm.DB, a *stand.Account) error { a.Balance = 5; return tx.Save(a).Error },
	"Update": func(tx *gorm.DB, a *stand.Account) error { return tx.Model(a).Update("balance", 5).Error },
	"slice":  func(tx *gorm.DB, a *stand.Account) error { a.Balance = 5; return tx.Save([]*stand.Account{a}).Error },
	"upsert": func(tx *gorm.DB, a *stand.Account) error {
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(a).Error
	},
	"Touch": func(tx *gorm.DB, a *stand.Account) error { return gormlock.Touch(tx, a) },
	"raw": func(tx *gorm.DB, a *stand.Account) error {
		return errors.Join(tx.Exec("UPDATE accounts SET version = version + 1").Error, tx.First(a, a.ID).Error)
	},
}

// TestAborted_behindASavepoint: what failed behind a savepoint takes back what is behind it, and nothing before.
func TestAborted_behindASavepoint(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	held := lockkey.Of("held")
	stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		for name, fails := range map[string]func(tx *gorm.DB) error{
			"nested": func(tx *gorm.DB) error {
				return tx.Transaction(func(tx *gorm.DB) error { return tx.Exec("SELECT 1/0").Error })
			},
			"by hand": func(tx *gorm.DB) error {
				return errors.Join(tx.Exec("SAVEPOINT b").Error, tx.Exec("SELECT 1/0").Error, tx.Exec("ROLLBACK TO b").Error)
			},
			"in one text": func(tx *gorm.DB) error {
				return errors.Join(tx.SavePoint("c").Error, tx.Exec("SELECT 1; SAVEPOINT d; SELECT 1/0").Error, tx.RollbackTo("c").Error)
			},
			"a lock": func(tx *gorm.DB) error {
				return db.Transaction(func(other *gorm.DB) error {
					return errors.Join(other.Scopes(gormlock.WithXactLock(held)).First(&stand.Account{}).Error, tx.Scopes(gormlock.WithXactLock(held, gormlock.Timeout(time.Millisecond))).First(&stand.Account{}).Error)
				})
			},
			"a row": func(tx *gorm.DB) error {
				return db.Transaction(func(other *gorm.DB) error {
					return errors.Join(gormlock.LockRow(other, &stand.Account{ID: 2}), gormlock.LockRow(tx, &stand.Account{ID: 2}, gormlock.Timeout(time.Millisecond)))
				})
			},
		} {
			stand.MustDo(t, db.Exec("TRUNCATE accounts"))
			stand.MustDo(t, db.Create(&stand.Account{ID: 2}))
			a := stand.Account{ID: 1, Balance: 100}
			stand.MustDo(t, db.Create(&a))
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
				a.Balance = 5
				stand.MustDo(t, tx.Save(&a))
				if err := fails(tx); err == nil {
					t.Errorf("%s: it did not fail", name)
				}
				stand.Equal(t, name, a.Version, 2)
				a.Balance = 6
				return tx.Save(&a).Error
			}))
			stand.Equal(t, name, a, stand.Row[stand.Account](t, db, 1))
		}
		return nil
	}))
}

type abortedParent struct {
	ID   int64
	Name string
	Kids []abortedKid `gorm:"foreignKey:ParentID"`
}

type abortedKid struct {
	ID       int64
	ParentID *int64
	Note     string `gorm:"check:note <> 'bad'"`
	Version  int64  `gorm:"not null;default:1" gormlock:"version"`
}

// TestAborted_foreignKeys: what an aborted transaction gave to children goes back too, also if the statement that failed had them.
func TestAborted_foreignKeys(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&abortedParent{}, &abortedKid{}})
	for name, fails := range map[string]func(tx *gorm.DB, p *abortedParent) error{
		"another statement": func(tx *gorm.DB, _ *abortedParent) error { return tx.Exec("SELECT 1/0").Error },
		"the same parent": func(tx *gorm.DB, p *abortedParent) error {
			p.Kids[0].Note = "bad"
			return tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(p).Error
		},
	} {
		kid := abortedKid{Note: "good"}
		stand.MustDo(t, db.Create(&kid))
		p := abortedParent{Kids: []abortedKid{kid}}
		var then string
		err := db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Create(&p))
			if p.Kids[0].ParentID == nil {
				t.Fatal("the child has no parent")
			}
			err := fails(tx, &p)
			then = fmt.Sprintf("%+v", p)
			if p.Kids[0].ParentID != nil {
				t.Errorf("%s: the child has the parent %d", name, *p.Kids[0].ParentID)
			}
			return err
		})
		if now := fmt.Sprintf("%+v", p); err == nil || then != now {
			t.Errorf("%s: %v, %s, and rolled back %s", name, err, then, now)
		}
	}
}

// TestAppend_thatFails: GORM has copied the children into a new slice by then. A rollback reaches them there.
func TestAppend_thatFails(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&abortedParent{}, &abortedKid{}})
	for name, appends := range map[string]func(a *gorm.Association) error{
		"Append":  func(a *gorm.Association) error { return a.Append(&abortedKid{Note: "bad"}) },
		"a slice": func(a *gorm.Association) error { return a.Append([]abortedKid{{Note: "good"}, {Note: "bad"}}) },
	} {
		p := abortedParent{Kids: []abortedKid{{Note: "good"}}}
		stand.MustDo(t, db.Create(&p))
		if err := db.Transaction(func(tx *gorm.DB) error {
			p.Kids[0].Note = "mine"
			stand.MustDo(t, tx.Save(&p.Kids[0]))
			return appends(tx.Model(&p).Association("Kids"))
		}); err == nil {
			t.Fatalf("%s: it did not fail", name)
		}
		stand.MustDo(t, db.Exec("UPDATE aborted_kids SET note = 'rival', version = version + 1 WHERE parent_id = ?", p.ID))
		if err := db.Save(&p.Kids[0]).Error; !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
		stand.Equal(t, name, stand.Row[abortedKid](t, db, p.Kids[0].ID).Note, "rival")
	}
}

// TestAborted_byAContext: the ctx of a statement ends, and the driver closes the connection. The ctx of the transaction lives.
func TestAborted_byAContext(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	a := stand.Account{ID: 1, Balance: 100}
	stand.MustDo(t, db.Create(&a))
	tx := db.Begin()
	a.Balance = 5
	stand.MustDo(t, tx.Save(&a))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := tx.WithContext(ctx).Exec("SELECT pg_sleep(30)").Error; err == nil {
		t.Fatal("it did not fail")
	}
	stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 777, version = version + 1"))
	stand.MustStale(t, db.Save(&a).Error)
	stand.Equal(t, "balance", stand.Row[stand.Account](t, db, 1).Balance, 777)
	_ = tx.Rollback()
}

// quietDriver hides pgx, so nobody sees the status in the server's answers.
type quietDriver struct{ driver.Connector }

func (d quietDriver) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := d.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return quietConn{conn, conn.(driver.ExecerContext), conn.(driver.QueryerContext), conn.(driver.ConnBeginTx), conn.(driver.NamedValueChecker)}, nil
}

type quietConn struct {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnBeginTx
	driver.NamedValueChecker
}

// TestAborted_byADriverThatIsSilent: then an error of the server says it.
func TestAborted_byADriverThatIsSilent(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(pgtest.SchemaDSN(t))
	stand.Must(t, err)
	pool := sql.OpenDB(quietDriver{stdlib.GetConnector(*config)})
	t.Cleanup(func() { _ = pool.Close() })
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	stand.Must(t, err)
	stand.Must(t, db.Use(gormlock.New()))
	stand.Must(t, db.AutoMigrate(&stand.Account{}))
	a := stand.Account{ID: 1, Balance: 100}
	stand.MustDo(t, db.Create(&a))
	for name, fails := range failing {
		stand.MustDo(t, db.First(&a))
		tx := db.Begin()
		a.Balance = 5
		stand.MustDo(t, tx.Save(&a))
		if fails(tx, &a) == nil {
			t.Fatalf("%s: it did not fail", name)
		}
		stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 777, version = version + 1"))
		if err := db.Save(&a).Error; !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Errorf("%s: %v", name, err)
		}
		stand.Equal(t, name, stand.Row[stand.Account](t, db, 1).Balance, 777)
		_ = tx.Rollback()
	}
}
