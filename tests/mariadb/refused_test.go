package mariadb_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
	"github.com/gormlock/gormlock/work"
)

type xminned struct {
	ID    int64
	State string `gorm:"size:20"`
	Xmin  uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

type task struct {
	work.Job
	Body string `gorm:"size:20"`
}

var key = lockkey.Of("report", 1)

// needsPostgres is what needs PostgreSQL, by the door.
var needsPostgres = map[string]func(db *gorm.DB) error{
	"WithXactLock, query": func(db *gorm.DB) error { return db.Scopes(gormlock.WithXactLock(key)).Find(&[]plain{}).Error },
	"WithXactLock, update": func(db *gorm.DB) error {
		return db.Scopes(gormlock.WithXactLock(key)).Model(&plain{ID: 1}).Update("balance", 9).Error
	},
	"WithXactLock, create": func(db *gorm.DB) error { return db.Scopes(gormlock.WithXactLock(key)).Create(&plain{}).Error },
	"XactLock, delete":     func(db *gorm.DB) error { return db.Clauses(gormlock.XactLock(key)).Delete(&plain{ID: 1}).Error },
	"XactLock, raw": func(db *gorm.DB) error {
		return db.Clauses(gormlock.XactLock(key)).Exec("UPDATE plains SET balance = 9").Error
	},
	"XactLock, row": func(db *gorm.DB) error {
		return db.Clauses(gormlock.XactLock(key)).Model(&plain{}).Select("1").Row().Err()
	},
	"XactLock, transaction": func(db *gorm.DB) error {
		return db.Clauses(gormlock.XactLock(key)).Transaction(func(tx *gorm.DB) error { return tx.Model(&plain{ID: 1}).Update("balance", 9).Error })
	},
	"XactLock, gorm.G": func(db *gorm.DB) error {
		_, err := gorm.G[plain](db, gormlock.XactLock(key)).Where("id = 1").Update(context.Background(), "balance", 9)
		return err
	},
	"XactLock, Try": func(db *gorm.DB) error {
		return db.Clauses(gormlock.XactLock(key, gormlock.Try())).Model(&plain{ID: 1}).Update("balance", 9).Error
	},
	"Locking": func(db *gorm.DB) error {
		return gormlock.Transaction(db, func(tx *gorm.DB) error { return tx.Model(&plain{ID: 1}).Update("balance", 9).Error }, gormlock.Locking(key))
	},
	"Once": func(db *gorm.DB) error {
		_, err := gormlock.Once(db, "k", func(tx *gorm.DB) (int, error) { return 1, tx.Model(&plain{ID: 1}).Update("balance", 9).Error })
		return err
	},
	"SweepOnce":    func(db *gorm.DB) error { _, err := gormlock.SweepOnce(db, time.Hour, 10); return err },
	"MigrateOnce":  gormlock.MigrateOnce,
	"MigrateAll":   gormlock.MigrateAll,
	"AutoMigrate":  func(db *gorm.DB) error { return gormlock.AutoMigrate(db, &plain{}) },
	"xmin, update": func(db *gorm.DB) error { return db.Model(&xminned{ID: 1}).Update("state", "x").Error },
	"xmin, query":  func(db *gorm.DB) error { return db.Find(&[]xminned{}).Error },
	"xmin, create": func(db *gorm.DB) error { return db.Create(&xminned{}).Error },

	"work.Migrate": func(db *gorm.DB) error { return work.Migrate(db, &task{}) },
	"work.New": func(db *gorm.DB) error {
		_, err := work.New(db, func(context.Context, *task) error { return nil })
		return err
	},
	"work.Requeue":  func(db *gorm.DB) error { _, err := work.Requeue(context.Background(), db, &task{}); return err },
	"work.Stats":    func(db *gorm.DB) error { _, err := work.Stats(context.Background(), db, &task{}); return err },
	"work.Enqueue":  func(db *gorm.DB) error { return work.Enqueue(db, &task{}) },
	"work.Complete": func(db *gorm.DB) error { return work.Complete(db, &task{}) },
}

// needsPostgresIn is what needs a transaction too.
var needsPostgresIn = map[string]func(tx *gorm.DB) error{
	"AcquireXactLock": func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}) },
	"Locking, nested": func(tx *gorm.DB) error {
		return gormlock.Transaction(tx, func(tx *gorm.DB) error { return tx.Exec("UPDATE plains SET balance = 9").Error }, gormlock.Locking(key))
	},
	"FenceTx":  func(tx *gorm.DB) error { return gormlock.FenceTx(tx, token(1)) },
	"FenceFor": func(tx *gorm.DB) error { _, err := gormlock.FenceFor(tx, key); return err },
}

// What needs PostgreSQL says so by ErrNotPostgres and sends nothing: the server's own log is the witness.
func TestNeedsPostgres(t *testing.T) {
	t.Parallel()
	db := open(t, &plain{})
	stand.Must(t, db.Create(&plain{ID: 1}).Error)
	stand.Must(t, db.Exec("CREATE TABLE xminneds (id bigint primary key auto_increment, state varchar(20))").Error)
	refused := func(name string, in *gorm.DB, do func(*gorm.DB) error) {
		var err error
		for _, sent := range mariaserver.Statements(t, db, func() { err = do(in) }) {
			if verb, _, _ := strings.Cut(sent, " "); !slices.Contains([]string{"START", "COMMIT", "ROLLBACK", "SAVEPOINT"}, verb) {
				t.Errorf("%s sent %s", name, sent)
			}
		}
		if !errors.Is(err, gormlock.ErrNotPostgres) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, do := range needsPostgres {
		refused(name, db, do)
		if name == "work.New" {
			continue // which refuses a transaction
		}
		tx := db.Begin()
		refused(name+", in a transaction", tx, do)
		tx.Rollback()
	}
	for name, do := range needsPostgresIn {
		tx := db.Begin()
		refused(name, tx, do)
		tx.Rollback()
	}
	stand.Equal(t, "row", stand.Row[plain](t, db, 1), plain{ID: 1})
}
