package hooks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type vault struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// registrar is what GORM's callback processors answer to.
type registrar interface {
	Get(name string) func(*gorm.DB)
	Remove(name string) error
	Replace(name string, fn func(*gorm.DB)) error
	Register(name string, fn func(*gorm.DB)) error
}

func registrarOf(db *gorm.DB, op string) registrar {
	c := db.Callback()
	return map[string]registrar{"create": c.Create(), "update": c.Update(), "delete": c.Delete(), "query": c.Query(), "row": c.Row(), "raw": c.Raw()}[op]
}

// changes are what an application may do to a callback of GORM's.
var changes = map[string]func(r registrar, name string) error{
	"removed":  func(r registrar, name string) error { return r.Remove(name) },
	"replaced": func(r registrar, name string) error { return r.Replace(name, wrapped(r.Get(name))) },
	"removed and registered again": func(r registrar, name string) error {
		own := r.Get(name)
		return errors.Join(r.Remove(name), r.Register(name, wrapped(own)))
	},
}

func wrapped(callback func(*gorm.DB)) func(*gorm.DB) { return func(db *gorm.DB) { callback(db) } }

// vaults is a table with one row, its rival, and a key that the rival holds, or nobody.
type vaults struct {
	pool       *sql.DB
	plain      *gorm.DB
	rival      stand.RowRival
	held, free lockkey.Key
}

// row is what is stored, "none" if nothing is.
func (v vaults) row(t *testing.T) string {
	t.Helper()
	var rows []vault
	stand.Must(t, v.plain.Order("id").Find(&rows).Error)
	return fmt.Sprint(rows)
}

// asks are what a program wants of gormlock: of each the error, and what is wrong if there is none.
func (v vaults) asks(db *gorm.DB) map[string]func() (wrong string, err error) {
	fresh, stale := vault{ID: 1, Balance: 5, Version: 2}, vault{ID: 1, Balance: 5, Version: 1}
	all := clause.OnConflict{UpdateAll: true}
	writes := map[string]func(of vault) error{
		"Save":       func(of vault) error { return db.Save(&of).Error },
		"Update":     func(of vault) error { return db.Model(&of).Update("balance", 5).Error },
		"Updates":    func(of vault) error { return db.Model(&of).Updates(vault{Balance: 5}).Error },
		"slice Save": func(of vault) error { return db.Save([]*vault{&of}).Error },
		"upsert":     func(of vault) error { return db.Clauses(all).Create(&of).Error },
		"Delete":     func(of vault) error { return db.Delete(&of).Error },
		"ExpectVersion": func(of vault) error {
			return db.Clauses(gormlock.ExpectVersion(of.Version)).Model(&vault{}).Where("id = 1").Update("balance", 5).Error
		},
		"in a transaction, Save": func(of vault) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Save(&of).Error })
		},
		"in a transaction whose error is dropped, Save": func(of vault) (err error) {
			_ = db.Transaction(func(tx *gorm.DB) error { err = tx.Save(&of).Error; return nil })
			return err
		},
	}
	asks := map[string]func() (string, error){}
	for name, write := range writes {
		asks[name] = func() (string, error) { return "written", write(fresh) }
		asks[name+", stale"] = func() (string, error) { return "no error", write(stale) }
	}
	locked := map[string]func(tx *gorm.DB) error{
		"query": func(tx *gorm.DB) error { return tx.Find(&[]vault{}).Error },
		"query of a table": func(tx *gorm.DB) error {
			return tx.Table("vaults").Find(&[]map[string]any{}).Error
		},
		"Rows": func(tx *gorm.DB) error {
			rows, err := tx.Model(&vault{}).Rows()
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			return rows.Err()
		},
		"Row":    func(tx *gorm.DB) error { var id int64; return tx.Model(&vault{}).Select("id").Row().Scan(&id) },
		"Exec":   func(tx *gorm.DB) error { return tx.Exec("UPDATE vaults SET balance = 6 WHERE false").Error },
		"Create": func(tx *gorm.DB) error { return tx.Table("vaults").Create(map[string]any{"id": 7}).Error },
		"Update": func(tx *gorm.DB) error { return tx.Table("vaults").Where("id = 1").Update("balance", 5).Error },
		"Delete": func(tx *gorm.DB) error { return tx.Table("vaults").Where("id = 1").Delete(nil).Error },
	}
	for name, run := range locked {
		asks["lock, held by another, "+name] = func() (string, error) {
			return "no error", db.Transaction(func(tx *gorm.DB) error { return run(tx.Scopes(gormlock.WithXactLock(v.held, gormlock.Try()))) })
		}
		asks["lock, "+name] = func() (wrong string, err error) {
			_ = db.Transaction(func(tx *gorm.DB) error {
				if err = run(tx.Scopes(gormlock.WithXactLock(v.free))); err == nil && !v.isLocked() {
					wrong = "not locked"
				}
				return errBack
			})
			return wrong, err
		}
	}
	asks["row lock"] = func() (wrong string, err error) {
		_ = db.Transaction(func(tx *gorm.DB) error {
			if err = tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]vault{}).Error; err == nil && len(v.rival.Locked("vaults")) != 1 {
				wrong = "not locked"
			}
			return errBack
		})
		return wrong, err
	}
	asks["Claim"] = func() (string, error) {
		rows, err := gormlock.Claim[vault](db, 1, map[string]any{"balance": 5}, func(q *gorm.DB) *gorm.DB { return q.Order("id") })
		if err == nil && len(rows) != 1 {
			return "not claimed", nil
		}
		return "written", err
	}
	return asks
}

var errBack = errors.New("back")

func (v vaults) isLocked() bool {
	n, _ := v.free.Int64()
	var got bool
	err := v.rival.Conn.QueryRow(context.Background(), "SELECT pg_try_advisory_xact_lock($1)", n).Scan(&got)
	return err == nil && !got
}

// An application may remove or replace any callback of GORM's. What is asked of gormlock is done then as ever, or it is an error and
// nothing is executed.
func TestCallbacks_thatTheApplicationChanges(t *testing.T) {
	t.Parallel()
	v := vaults{pool: pgtest.SQLDB(t, pgtest.Schema()), plain: pgtest.Open(t, pgtest.Schema(), pgtest.Param("lock_timeout", "3s")), rival: stand.NewRowRival(t)}
	v.held, v.free = pgtest.Key(t, "held"), pgtest.Key(t, "free")
	n, _ := v.held.Int64()
	holder := stand.NewRowRival(t)
	release := holder.Hold("SELECT pg_advisory_xact_lock($1)", n)
	defer release()
	stand.Must(t, v.plain.AutoMigrate(&vault{}))
	for op, names := range full {
		for _, name := range names {
			if strings.HasPrefix(name, "gormlock:") {
				continue
			}
			for how, change := range changes {
				for _, first := range []bool{true, false} {
					v.try(t, fmt.Sprintf("%s of %s %s, before Use: %v", name, op, how, first), how == "replaced", func(db *gorm.DB, use func()) {
						if !first {
							use()
						}
						if err := change(registrarOf(db, op), name); err != nil && how != "removed and registered again" {
							t.Errorf("%s of %s %s: %v", name, op, how, err)
						}
						if first {
							use()
						}
					})
				}
			}
		}
	}
}

func (v vaults) try(t *testing.T, what string, works bool, open func(db *gorm.DB, use func())) {
	t.Helper()
	plugin := gormlock.New()
	defer func() { _ = plugin.Close() }()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: v.pool}), &gorm.Config{Logger: logger.Discard})
	stand.Must(t, err)
	var used error
	if open(db, func() { used = db.Use(plugin) }); used != nil {
		if works {
			t.Errorf("%s: %v", what, used)
		}
		return
	}
	for name, ask := range v.asks(db) {
		stand.Must(t, v.plain.Exec("DELETE FROM vaults").Error)
		stand.Must(t, v.plain.Exec("INSERT INTO vaults (id, balance, version) VALUES (1, 1, 2)").Error)
		before := v.row(t)
		wrong, err := ask()
		switch after := v.row(t); {
		case err == nil && wrong == "written":
			if after == before {
				t.Errorf("%s: %s: no error, and nothing is stored", what, name)
			}
		case err == nil && wrong != "":
			t.Errorf("%s: %s: %s", what, name, wrong)
		case err != nil && after != before:
			t.Errorf("%s: %s: %v, but it is executed: %s, before %s", what, name, err, after, before)
		case err != nil && strings.Contains(err.Error(), "is missing among the callbacks") && !strings.Contains(err.Error(), strings.Fields(what)[0]):
			t.Errorf("%s: %s: the error does not name the callback: %v", what, name, err)
		case err != nil && works && wrong == "written":
			t.Errorf("%s: %s: %v", what, name, err)
		}
	}
}
