package interop

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey/compat"
)

type javaAccount struct {
	ID      int64
	Balance int64
	Name    string
	Views   int64  `gormlock:"unversioned"` // @OptimisticLock(excluded = true)
	Version *int32 `gormlock:"version,hibernate"`
}

func (javaAccount) TableName() string { return "accounts" }

// saving is the table of a subclass: @Inheritance(strategy = JOINED).
type saving struct {
	ID   int64
	Rate int
}

type short struct {
	ID      int64
	Name    string
	Version int16 `gormlock:"version,hibernate"`
}

type event struct {
	ID      int64
	Name    string
	Version time.Time `gorm:"type:timestamp(6)" gormlock:"version,hibernate"`
}

type coarseEvent struct {
	ID      int64
	Name    string
	Version time.Time `gorm:"type:timestamp(3)" gormlock:"version,hibernate"`
}

// java is one set of tables with a program in Go and a Hibernate session on it.
type java struct {
	db        *gorm.DB
	hibernate hibernate
}

// account makes a row at version 0 and loads it on both sides.
func (j java) account(t *testing.T) (javaAccount, entity) {
	t.Helper()
	a := javaAccount{Name: "new", Balance: 100}
	must(t, j.db.Create(&a).Error)
	return a, j.hibernate.find(t, a.ID)
}

// load reads the row into Go.
func (j java) load(t *testing.T, id int64) javaAccount {
	t.Helper()
	var a javaAccount
	must(t, j.db.First(&a, id).Error)
	return a
}

func (j java) mustHave(t *testing.T, id int64, name string, version int64) {
	t.Helper()
	e := j.hibernate.find(t, id)
	equal(t, "name in the row", e.name, name)
	if e.version == nil || *e.version != version {
		t.Errorf("version of the row: got %v, want %d", e.version, version)
	}
}

// The rules of a table that Hibernate writes too, in both directions.
func TestHibernate(t *testing.T) {
	t.Parallel()
	eachJava(t, map[string]func(*testing.T, java){
		"H1 H3 a new row is at 0 and never at NULL":          hibernateCreate,
		"H2 a negative version of a new row is none":         hibernateCreateNegative,
		"H4 H14 a stale update fails on either side":         hibernateUpdate,
		"H5 nothing changed, nothing moved":                  hibernateNothingChanged,
		"H6 H11 every change is seen, bulk statements too":   hibernateEveryChange,
		"H7 an excluded column is checked and moves nothing": hibernateExcluded,
		"H8 H9 collections and subclasses move their owner":  hibernateOwner,
		"H10 a stale delete fails on either side":            hibernateDelete,
		"H12 a forced increment sets nothing else":           hibernateForceIncrement,
		"H13 a read check holds the version":                 hibernateReadCheck,
		"H15 temporal versions":                              hibernateTemporal,
		"H16 an int2 that is full, and one that wrapped":     hibernateShort,
		"H17 a detached struct":                              hibernateDetached,
		"H18 row locks":                                      hibernateRowLocks,
		"H19 a conflict dooms its transaction":               hibernateDooms,
		"H22 Flyway's lock":                                  hibernateFlyway,
	})
}

// eachJava runs parts of a test, each on tables of its own that both sides write.
func eachJava(t *testing.T, parts map[string]func(*testing.T, java)) {
	t.Helper()
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := java{db: open(t), hibernate: newHibernate(t)}
			j.hibernate.exec(t, hibernateTables)
			part(t, j)
		})
	}
}

func hibernateCreate(t *testing.T, j java) {
	a, e := j.account(t)
	equal(t, "in memory", *a.Version, 0)
	e.name = "java"
	must(t, j.hibernate.flush(&e))
	j.mustHave(t, a.ID, "java", 1)

	persisted := entity{name: "persisted"}
	j.hibernate.persist(t, &persisted)
	b := j.load(t, persisted.id)
	must(t, j.db.Model(&b).Update("name", "go").Error)
	j.mustHave(t, persisted.id, "go", 1)

	must(t, j.db.Create([]javaAccount{{}, {}}).Error)
	must(t, j.db.Omit("version").Create(&javaAccount{}).Error)
	must(t, j.db.Model(&javaAccount{}).Create(map[string]any{"name": "map", "balance": 1, "views": 0}).Error)
	var nulls int64
	must(t, j.db.Model(&javaAccount{}).Where("version IS NULL").Count(&nulls).Error)
	equal(t, "NULLs", nulls, 0)
}

func hibernateCreateNegative(t *testing.T, j java) {
	unsaved, seven := int32(-1), int32(7)
	a, b := javaAccount{Version: &unsaved}, javaAccount{Version: &seven}
	must(t, j.db.Create(&a).Error)
	must(t, j.db.Create(&b).Error)
	j.mustHave(t, a.ID, "", 0)
	j.mustHave(t, b.ID, "", 7)
}

func hibernateUpdate(t *testing.T, j java) {
	a, e := j.account(t)
	must(t, j.db.Model(&a).Update("name", "go").Error)
	e.balance = 1
	mustBeStaleInJava(t, j.hibernate.flush(&e))
	j.mustHave(t, a.ID, "go", 1)

	e = j.hibernate.find(t, a.ID)
	for range 3 { // H14: each flush counts
		e.balance++
		must(t, j.hibernate.flush(&e))
	}
	stale := mustBeStale(t, j.db.Model(&a).Update("name", "lost").Error)
	equal[any](t, "actual", stale.Actual, int64(4))
	a.Name = "lost"
	mustStale(t, j.db.Save(&a).Error)
	mustStale(t, j.db.Save([]*javaAccount{&a}).Error)
	j.mustHave(t, a.ID, "go", 4)

	must(t, j.hibernate.remove(e))
	mustBeGone(t, j.db.Model(&a).Update("name", "lost").Error)
	mustBeGone(t, j.db.Save(&a).Error)
}

func hibernateNothingChanged(t *testing.T, j java) {
	a, e := j.account(t)
	must(t, j.db.Model(&a).Updates(map[string]any{}).Error)
	must(t, j.db.Model(&a).Updates(javaAccount{}).Error)
	e.name = "still fresh"
	must(t, j.hibernate.flush(&e))
	j.mustHave(t, a.ID, "still fresh", 1)
}

func hibernateEveryChange(t *testing.T, j java) {
	for what, change := range map[string]func(a javaAccount) error{
		"Update":       func(a javaAccount) error { return j.db.Model(&a).Update("name", "go").Error },
		"UpdateColumn": func(a javaAccount) error { return j.db.Model(&a).UpdateColumn("name", "go").Error },
		"a bulk update": func(a javaAccount) error {
			return j.db.Model(&javaAccount{}).Where("id = ?", a.ID).Update("name", "go").Error
		},
		"a bulk update of an expression": func(a javaAccount) error {
			return j.db.Model(&javaAccount{}).Where("id = ?", a.ID).UpdateColumn("name", gorm.Expr("?", "go")).Error
		},
		"Save":            func(a javaAccount) error { a.Name = "go"; return j.db.Save(&a).Error },
		"Save of a slice": func(a javaAccount) error { a.Name = "go"; return j.db.Save([]*javaAccount{&a}).Error },
		"psql, with the trigger": func(a javaAccount) error {
			return errors.Join(j.db.Exec(gormlock.VersionTrigger("accounts", "version")).Error,
				j.db.Exec("UPDATE accounts SET name = 'go' WHERE id = ?", a.ID).Error)
		},
	} {
		t.Run(what, func(t *testing.T) {
			a, e := j.account(t)
			must(t, change(a))
			e.balance = 1 // its flush would write the old name too
			mustBeStaleInJava(t, j.hibernate.flush(&e))
			j.mustHave(t, a.ID, "go", 1)
		})
	}
	a, _ := j.account(t)
	j.hibernate.exec(t, "update accounts a1_0 set name='jpql',version=version+1 where a1_0.id=$1", a.ID) // EclipseLink, and update versioned
	mustStale(t, j.db.Model(&a).Update("name", "lost").Error)
}

func hibernateExcluded(t *testing.T, j java) {
	a, e := j.account(t)
	must(t, j.db.Model(&a).Update("views", 5).Error)
	j.mustHave(t, a.ID, "new", 0)
	equal(t, "in memory", *a.Version, 0)
	e.name = "java"
	must(t, j.hibernate.flush(&e))
	mustStale(t, j.db.Model(&a).Update("views", 6).Error)
	a = j.load(t, a.ID)
	must(t, j.db.Model(&a).Updates(map[string]any{"views": 7, "balance": 1}).Error)
	j.mustHave(t, a.ID, "java", 2)
}

func hibernateOwner(t *testing.T, j java) {
	a, e := j.account(t)
	must(t, j.db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Exec("INSERT INTO account_labels VALUES (?, 'go')", a.ID).Error)
		must(t, tx.Create(&saving{ID: a.ID, Rate: 3}).Error)
		return gormlock.Touch(tx, &a)
	}))
	j.mustHave(t, a.ID, "new", 1) // once in a transaction
	mustBeStaleInJava(t, j.hibernate.flush(&e))

	e = j.hibernate.find(t, a.ID)
	j.hibernate.exec(t, "insert into account_labels (account_id,label) values ($1,'java')", e.id)
	must(t, j.hibernate.forceIncrement(&e)) // the owner of the collection is dirty
	mustStale(t, gormlock.Touch(j.db, &a))
	mustStale(t, j.db.Model(&a).Update("name", "lost").Error)
}

func hibernateDelete(t *testing.T, j java) {
	a, e := j.account(t)
	must(t, j.db.Model(&a).Update("name", "go").Error)
	mustBeStaleInJava(t, j.hibernate.remove(e))
	e = j.hibernate.find(t, a.ID)
	e.name = "java"
	must(t, j.hibernate.flush(&e))
	mustStale(t, j.db.Delete(&a).Error)
	mustStale(t, j.db.Delete([]javaAccount{a}).Error)
	j.mustHave(t, a.ID, "java", 2)
	a = j.load(t, a.ID)
	must(t, j.db.Delete(&a).Error)
	mustBeStaleInJava(t, j.hibernate.flush(&e))
	mustBeStaleInJava(t, j.hibernate.remove(e))
	mustBeGone(t, j.db.Delete(&a).Error)
}

// touchable has a time of update, which a forced increment leaves alone.
type touchable struct {
	ID        int64
	UpdatedAt time.Time
	Version   int64 `gormlock:"version,hibernate"`
}

func hibernateForceIncrement(t *testing.T, j java) {
	a, e := j.account(t)
	must(t, gormlock.Touch(j.db, &a))
	equal(t, "in memory", *a.Version, 1)
	mustBeStaleInJava(t, j.hibernate.forceIncrement(&e))
	e = j.hibernate.find(t, a.ID)
	must(t, j.hibernate.forceIncrement(&e))
	mustStale(t, gormlock.Touch(j.db, &a))
	j.mustHave(t, a.ID, "new", 2)

	must(t, j.db.AutoMigrate(&touchable{}))
	b := touchable{UpdatedAt: time.Now().UTC().Add(-time.Hour).Truncate(time.Second)}
	must(t, j.db.Create(&b).Error)
	at := b.UpdatedAt
	must(t, gormlock.Touch(j.db, &b))
	var row touchable
	must(t, j.db.First(&row, b.ID).Error)
	equal(t, "updated_at moved", row.UpdatedAt.Equal(at), true)
	equal(t, "version", row.Version, 1)
}

func hibernateReadCheck(t *testing.T, j java) {
	a, e := j.account(t)
	pid := int(j.hibernate.conn.PgConn().PID())
	done := make(chan error, 1)
	must(t, j.db.Transaction(func(tx *gorm.DB) error {
		must(t, gormlock.VerifyVersion(tx, &a))
		go func() {
			e.name = "java"
			done <- j.hibernate.flush(&e)
		}()
		pgtest.WaitBackendBlocked(t, pid) // the version checked stays until the commit
		return nil
	}))
	must(t, <-done)
	err := j.db.Transaction(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, &a) })
	mustStale(t, err)

	a = j.load(t, a.ID)
	must(t, j.hibernate.verify(e))
	must(t, j.db.Model(&a).Update("name", "go").Error)
	mustBeStaleInJava(t, j.hibernate.verify(e))
	must(t, j.db.Delete(&a).Error)
	mustBeGone(t, j.db.Transaction(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, &a) }))
}

func hibernateTemporal(t *testing.T, j java) {
	fine := event{Name: "new"}
	must(t, j.db.Create(&fine).Error)
	e := j.hibernate.findEvent(t, "events", fine.ID)
	equal(t, "stored as in memory", e.version.Equal(fine.Version), true)
	e.name = "java"
	must(t, j.hibernate.flushEvent(&e, time.Microsecond))
	mustStale(t, j.db.Model(&fine).Update("name", "lost").Error)
	must(t, j.db.First(&fine, fine.ID).Error)
	for i := range 5 { // each own write is fresh for the next
		must(t, j.db.Model(&fine).Update("name", fmt.Sprint("go ", i)).Error)
	}
	mustBeStaleInJava(t, j.hibernate.flushEvent(&e, time.Microsecond))

	coarse := coarseEvent{Name: "new"}
	must(t, j.db.Create(&coarse).Error)
	e = j.hibernate.findEvent(t, "coarse_events", coarse.ID)
	old := coarse
	for i := range 5 {
		must(t, j.db.Model(&coarse).Update("name", fmt.Sprint("go ", i)).Error)
		mustBeStaleInJava(t, j.hibernate.flushEvent(&e, time.Millisecond)) // even if both write in one tick
		mustStale(t, j.db.Save(&old).Error)
		e, old = j.hibernate.findEvent(t, "coarse_events", coarse.ID), coarse
	}
	must(t, j.db.Model(&coarseEvent{}).Where("id = ?", coarse.ID).Update("name", "bulk").Error)
	mustBeStaleInJava(t, j.hibernate.flushEvent(&e, time.Millisecond))
	mustStale(t, j.db.Save(&old).Error)
}

func hibernateShort(t *testing.T, j java) {
	j.hibernate.exec(t, "insert into shorts (id,name,version) values (1,'full',32767),(2,'wrapped',-32768)")
	var full, wrapped short
	must(t, j.db.First(&full, 1).Error)
	must(t, j.db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(&full).Update("name", "go").Error; err == nil || !strings.Contains(err.Error(), "32767 is the largest") {
			t.Error(err)
		}
		return tx.First(&wrapped, 2).Error // the transaction is usable
	}))
	other := wrapped
	must(t, j.db.Model(&wrapped).Update("name", "go").Error)
	equal(t, "in memory", wrapped.Version, -32767)
	mustStale(t, j.db.Model(&other).Update("name", "lost").Error)
	mustStale(t, j.db.Save(&other).Error)
	must(t, j.db.Save(&wrapped).Error)
	must(t, j.db.Save([]*short{&wrapped}).Error)
	equal(t, "row", j.hibernate.exec(t, "select from shorts where id = 2 and version = $1", wrapped.Version), 1)
}

// accountForm is a detached Account, such as a request brings.
type accountForm struct {
	Name    string
	Version *int32
}

func hibernateDetached(t *testing.T, j java) {
	a, e := j.account(t)
	e.name = "java"
	must(t, j.hibernate.flush(&e))
	now := j.load(t, a.ID)
	zero, one := int32(0), int32(1)
	mustStale(t, j.db.Model(&now).Updates(accountForm{Name: "lost", Version: &zero}).Error)
	must(t, j.db.Model(&now).Updates(accountForm{Name: "form", Version: &one}).Error)
	j.mustHave(t, a.ID, "form", 2)
	mustBeGone(t, j.db.Save(&javaAccount{ID: 999, Name: "gone", Version: &one}).Error)
	mustBeGone(t, j.db.Save([]javaAccount{{ID: 999, Name: "gone", Version: &one}}).Error)
	var rows int64
	must(t, j.db.Model(&javaAccount{}).Count(&rows).Error)
	equal(t, "rows", rows, 1)
}

func hibernateRowLocks(t *testing.T, j java) {
	a, _ := j.account(t)
	// Each mode of Hibernate, and what it excludes in Go.
	for _, mode := range []struct {
		java     string
		excludes []gormlock.Strength
		admits   []gormlock.Strength
	}{
		{"for no key update", []gormlock.Strength{gormlock.ForUpdate, gormlock.ForNoKeyUpdate, gormlock.ForShare}, []gormlock.Strength{gormlock.ForKeyShare}},
		{"for update", []gormlock.Strength{gormlock.ForUpdate, gormlock.ForNoKeyUpdate, gormlock.ForShare, gormlock.ForKeyShare}, nil},
		{"for share", []gormlock.Strength{gormlock.ForUpdate, gormlock.ForNoKeyUpdate}, []gormlock.Strength{gormlock.ForShare, gormlock.ForKeyShare}},
	} {
		j.hibernate.exec(t, "begin")
		j.hibernate.exec(t, "select a1_0.id from accounts a1_0 where a1_0.id=$1 "+mode.java, a.ID)
		for _, strength := range mode.excludes {
			err := j.db.Transaction(func(tx *gorm.DB) error { return gormlock.LockRow(tx, &a, strength, gormlock.Try()) })
			if !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("%s beside %s: %v", strength, mode.java, err)
			}
		}
		for _, strength := range mode.admits {
			err := j.db.Transaction(func(tx *gorm.DB) error { return gormlock.LockRow(tx, &a, strength, gormlock.Try()) })
			if err != nil {
				t.Errorf("%s beside %s: %v", strength, mode.java, err)
			}
		}
		j.hibernate.exec(t, "rollback")
	}
	must(t, j.db.Transaction(func(tx *gorm.DB) error {
		must(t, gormlock.LockRow(tx, &a, gormlock.ForNoKeyUpdate))
		_, err := j.hibernate.conn.Exec(j.hibernate.ctx, "select a1_0.id from accounts a1_0 where a1_0.id=$1 for no key update nowait", a.ID)
		equal(t, "timeout 0 in Java", stateOf(err), "55P03")
		equal(t, "timeout -2 in Java", j.hibernate.exec(t, "select a1_0.id from accounts a1_0 where a1_0.id=$1 for no key update skip locked", a.ID), 0)
		return nil
	}))
}

func hibernateDooms(t *testing.T, j java) {
	a, e := j.account(t)
	e.name = "java"
	must(t, j.hibernate.flush(&e))
	other, _ := j.account(t)
	err := gormlock.Transaction(j.db, func(tx *gorm.DB) error {
		must(t, tx.Model(&other).Update("name", "in the same transaction").Error)
		mustStale(t, tx.Model(&a).Update("name", "lost").Error) // and swallowed
		return nil
	})
	mustStale(t, err)
	j.mustHave(t, other.ID, "new", 0)
	equal(t, "in memory", *other.Version, 0)

	must(t, gormlock.Transaction(j.db, func(tx *gorm.DB) error {
		must(t, tx.Model(&other).Update("name", "outside of the savepoint").Error)
		mustStale(t, tx.Transaction(func(tx *gorm.DB) error { return tx.Model(&a).Update("name", "lost").Error }))
		return nil
	}))
	j.mustHave(t, other.ID, "outside of the savepoint", 1)
}

func hibernateFlyway(t *testing.T, j java) {
	// A history table of its own: the lock is the database's.
	table := fmt.Sprint("flyway_schema_history_", time.Now().UnixNano())
	key := compat.Flyway("public", table)
	id, _ := key.Int64()
	must(t, gormlock.Transaction(j.db, func(*gorm.DB) error {
		var got bool
		must(t, j.hibernate.conn.QueryRow(j.hibernate.ctx, "SELECT pg_try_advisory_xact_lock($1)", id).Scan(&got))
		equal(t, "Flyway beside Go", got, false)
		return nil
	}, gormlock.Locking(key)))
	j.hibernate.exec(t, "begin")
	j.hibernate.exec(t, "SELECT pg_try_advisory_xact_lock($1)", id)
	err := gormlock.Transaction(j.db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, gormlock.Try()))
	if !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Error(err)
	}
	j.hibernate.exec(t, "rollback")
}
