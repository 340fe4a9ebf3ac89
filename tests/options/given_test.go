package options_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A call that makes a statement of its own uses what its db was given, or it is an error.
func TestGiven_isNotDropped(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, nil)
	stand.Must(t, gormlock.MigrateOnce(db))
	token := stand.Issue(t, db, "report", 1)
	stand.MustDo(t, db.Exec("INSERT INTO gormlock_once (key, result, created_at) VALUES ('charge/1', '1', now() - interval '9 days')"))
	key := gormlock.Key("given")
	for what, given := range map[string]func(db *gorm.DB) *gorm.DB{
		"Where":    func(db *gorm.DB) *gorm.DB { return db.Where("key LIKE 'mail/%'") },
		"a lock":   func(db *gorm.DB) *gorm.DB { return db.Clauses(gormlock.XactLock(key)) },
		"a scope":  func(db *gorm.DB) *gorm.DB { return db.Scopes(gormlock.WithXactLock(key)) },
		"row lock": func(db *gorm.DB) *gorm.DB { return db.Clauses(clause.Locking{Strength: "UPDATE"}) },
		"version":  func(db *gorm.DB) *gorm.DB { return db.Clauses(gormlock.ExpectVersion(1)) },
		"Table":    func(db *gorm.DB) *gorm.DB { return db.Table("others") },
		"Limit":    func(db *gorm.DB) *gorm.DB { return db.Limit(1) },
	} {
		if n, err := gormlock.SweepOnce(given(db), time.Hour, 10); strings.Contains(what, "lock") || what == "a scope" || what == "version" {
			stand.Equal(t, "keys removed", n, 0) // it uses a lock, in a transaction
		} else if n != 0 || !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("SweepOnce of a db with %s removed %d: %v", what, n, err)
		}
		for call, migrate := range map[string]func(*gorm.DB) error{"MigrateAll": gormlock.MigrateAll, "MigrateOnce": gormlock.MigrateOnce} {
			takes := what == "a lock" || what == "a scope"
			err := db.Transaction(func(tx *gorm.DB) error { return migrate(given(tx)) })
			if (err == nil) != takes {
				t.Errorf("%s of a db with %s: %v", call, what, err)
			}
		}
		if err := gormlock.Check(given(db), &stand.Account{}); !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("Check of a db with %s: %v", what, err)
		}
		stand.InTx(t, db, func(tx *gorm.DB) {
			if err := gormlock.FenceTx(given(tx), token); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("FenceTx of a tx with %s: %v", what, err)
			}
			stand.Must(t, gormlock.FenceTx(tx, token))
			stand.Must(t, gormlock.FenceTx(tx.Session(&gorm.Session{PrepareStmt: true}), token))
		})
	}
	n, err := gormlock.SweepOnce(db.WithContext(t.Context()).Debug(), time.Hour, 10)
	stand.Must(t, err)
	stand.Equal(t, "keys removed", n, 1)
}

// guarding guards its transaction in a hook, whose tx has the statement of the hook.
type guarding struct{ ID int64 }

func (*guarding) BeforeCreate(tx *gorm.DB) error {
	value, _ := tx.Get("token")
	token, _ := value.(fence.Token)
	return gormlock.FenceTx(tx, token)
}

func TestGiven_inAHook(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&guarding{}})
	stand.MustDo(t, db.Set("token", stand.Issue(t, db, "report", 2)).Omit("nothing").Create(&guarding{}))
}
