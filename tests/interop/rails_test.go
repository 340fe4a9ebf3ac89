package interop

import (
	"database/sql"
	"strconv"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

type account struct {
	ID           int64
	Name         string
	Balance      int64 `gorm:"type:integer"`
	EntriesCount int64 `gorm:"type:integer"`
	LockVersion  int64 `gorm:"type:integer" gormlock:"version,rails"`
	DeletedAt    gorm.DeletedAt
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// nullAccount tells a NULL in the lock column from 0.
type nullAccount struct {
	ID          int64
	Name        string
	LockVersion sql.NullInt32 `gormlock:"version,rails"`
}

func (nullAccount) TableName() string { return "accounts" }

type entry struct {
	ID        int64
	AccountID int64
	Text      string
}

type counter struct {
	ID          int64
	Name        string
	LockVersion int32 `gormlock:"version,rails"`
}

type document struct {
	ID       int64
	Title    string
	Revision int64 `gormlock:"version,rails"`
}

// shared is one set of tables with a program in Go and one in Rails on it.
type shared struct {
	db    *gorm.DB
	rails *rails
}

// account makes a row at version 0 and loads it on both sides.
func (s shared) account(t *testing.T) account {
	t.Helper()
	a := account{Name: "new", Balance: 100}
	must(t, s.db.Create(&a).Error)
	s.rails.load(t, a.ID)
	return a
}

// load makes @a the record.
func (r *rails) load(t *testing.T, id int64) {
	t.Helper()
	r.run(t, "@a = Account.find("+strconv.FormatInt(id, 10)+")")
}

// row reads the row past all structs under test.
func (s shared) row(t *testing.T, id int64) account {
	t.Helper()
	var a account
	must(t, s.db.Session(&gorm.Session{NewDB: true}).Unscoped().First(&a, id).Error)
	return a
}

func (s shared) version(t *testing.T, id int64) sql.NullInt32 {
	t.Helper()
	var a nullAccount
	must(t, s.db.First(&a, id).Error)
	return a.LockVersion
}

func (s shared) mustHave(t *testing.T, id int64, name string, version int64) {
	t.Helper()
	got := s.row(t, id)
	equal(t, "name in the row", got.Name, name)
	equal(t, "version of the row", got.LockVersion, version)
}

// renamedByGo reads a row of Rails' into Go and renames it, which leaves it at the version.
func (s shared) renamedByGo(t *testing.T, id, version int64) {
	t.Helper()
	var a account
	must(t, s.db.First(&a, id).Error)
	must(t, s.db.Model(&a).Update("name", "go").Error)
	s.mustHave(t, id, "go", version)
}

// The rules of a table that Rails writes too, each with a real ActiveRecord, in both directions.
func TestRails(t *testing.T) {
	t.Parallel()
	process := startRails(t)
	eachShared(t, process, map[string]func(*testing.T, shared){
		"R1 R3 a new row is at 0 and never at NULL":          railsCreate,
		"R2 a version given to a new row is kept":            railsCreateGiven,
		"R4 R7 NULL is 0 and is remembered":                  railsNull,
		"R5 R6 a stale update fails on either side":          railsUpdate,
		"R6 R22 a row that is gone":                          railsGone,
		"R8 a version from a form":                           railsForm,
		"R9 nothing changed, nothing moved":                  railsNothingChanged,
		"R10 a version of NULL is refused":                   railsNilVersion,
		"R11 a Save of all columns is checked":               railsFullSave,
		"R12 at REPEATABLE READ the loser is stale too":      railsRepeatableRead,
		"R13 after a rollback nothing is overwritten":        railsRollback,
		"R14 touch moves and checks the version":             railsTouch,
		"R14a touch moves also a version without times":      railsTouchWithoutTimes,
		"R16 counters move the version unchecked":            railsCounters,
		"R17 a child moves its parent":                       railsChildren,
		"R18 bulk updates move versions":                     railsBulk,
		"R19 R31 SQL that moves no version, and the trigger": railsTrigger,
		"R20 upserts":      railsUpsert,
		"R21 bulk deletes": railsBulkDelete,
		"R22 a stale delete fails on either side":              railsDelete,
		"R23 update_columns, and UpdateColumn that is checked": railsUpdateColumns,
		"R24 soft deletes":                        railsSoftDelete,
		"R25 a lock column by another name":       railsColumnName,
		"R27 the largest int4":                    railsLargest,
		"R30 versions only grow":                  railsOnlyGrows,
		"both sides count one row without a loss": railsHotRow,
	})
	t.Run("locks", func(t *testing.T) {
		t.Parallel()
		railsLocks(t, process)
	})
}

// eachShared runs parts of a test, each on tables of its own that both sides write.
func eachShared(t *testing.T, process *railsProcess, parts map[string]func(*testing.T, shared)) {
	t.Helper()
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared{db: open(t), rails: process.session(t, "main")}
			s.rails.run(t, "tables")
			part(t, s)
		})
	}
}

func railsCreate(t *testing.T, s shared) {
	a := s.account(t)
	equal(t, "stored by Go", s.version(t, a.ID), sql.NullInt32{Valid: true})
	equal(t, "read by Rails", s.rails.number(t, "@a.lock_version"), 0)
	s.rails.run(t, "@a.update!(name: 'rails')")
	s.mustHave(t, a.ID, "rails", 1)

	s.renamedByGo(t, s.rails.number(t, "Account.create!(name: 'by rails').id"), 1)

	many := []account{{Name: "x"}, {Name: "y"}}
	must(t, s.db.Create(&many).Error)
	must(t, s.db.Omit("lock_version").Create(&account{Name: "z"}).Error)
	must(t, s.db.Model(&account{}).Create(map[string]any{"name": "map"}).Error)
	equal(t, "NULLs", s.rails.number(t, "Account.where(lock_version: nil).count"), 0)
}

func railsCreateGiven(t *testing.T, s shared) {
	a := account{LockVersion: 42}
	must(t, s.db.Create(&a).Error)
	s.rails.load(t, a.ID)
	equal(t, "read by Rails", s.rails.number(t, "@a.lock_version"), 42)
	s.rails.run(t, "@a.update!(name: 'rails')")
	s.mustHave(t, a.ID, "rails", 43)

	s.renamedByGo(t, s.rails.number(t, "Account.create!(lock_version: 42).id"), 43)
}

func railsNull(t *testing.T, s shared) {
	for _, step := range []struct {
		name string
		test func(t *testing.T, id int64)
	}{
		{"Rails loads it, Go is first", func(t *testing.T, id int64) {
			var a account
			must(t, s.db.First(&a, id).Error)
			equal(t, "in memory", a.LockVersion, 0)
			must(t, s.db.Model(&a).Update("name", "go").Error)
			equal(t, "in memory", a.LockVersion, 1)
			s.rails.stale(t, "@a.update!(name: 'rails')", "update")
			s.mustHave(t, id, "go", 1)
		}},
		{"Go loads it, Rails is first", func(t *testing.T, id int64) {
			var a account
			var b nullAccount
			must(t, s.db.First(&a, id).Error)
			must(t, s.db.First(&b, id).Error)
			equal(t, "in memory", b.LockVersion.Valid, false)
			s.rails.run(t, "@a.update!(name: 'rails')")
			mustStale(t, s.db.Model(&a).Update("name", "go").Error)
			mustStale(t, s.db.Model(&b).Update("name", "go").Error)
			mustStale(t, s.db.Delete(&b).Error)
			s.mustHave(t, id, "rails", 1)
		}},
		{"a struct that knows NULL from 0", func(t *testing.T, id int64) {
			var a nullAccount
			must(t, s.db.First(&a, id).Error)
			must(t, s.db.Exec("UPDATE accounts SET lock_version = 0 WHERE id = ?", id).Error)
			mustStale(t, s.db.Model(&a).Update("name", "go").Error)
		}},
	} {
		s.rails.run(t, "Account.connection.execute(%q{INSERT INTO accounts (name) VALUES ('null')}); @a = Account.last")
		id := s.rails.number(t, "@a.id")
		equal(t, step.name, s.version(t, id).Valid, false)
		step.test(t, id)
	}
}

func railsUpdate(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Model(&a).Update("name", "go").Error)
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
	s.mustHave(t, a.ID, "go", 1)

	s.rails.run(t, "@a.reload.update!(name: 'rails')")
	s.mustHave(t, a.ID, "rails", 2)
	before := a
	for what, err := range map[string]error{
		"Update":               s.db.Model(&a).Update("name", "lost").Error,
		"Updates with a map":   s.db.Model(&a).Updates(map[string]any{"name": "lost"}).Error,
		"Updates with another": s.db.Model(&a).Updates(account{Name: "lost"}).Error,
		"UpdateColumn":         s.db.Model(&a).UpdateColumn("name", "lost").Error,
		"Save of a slice":      s.db.Save([]*account{&a}).Error,
		"Update of a slice":    s.db.Model([]*account{&a}).Update("name", "lost").Error,
	} {
		e := mustBeStale(t, err)
		equal[any](t, what, e.Expected, int64(1))
		equal[any](t, what, e.Actual, int64(2))
		equal(t, what, a, before)
	}
	s.mustHave(t, a.ID, "rails", 2)
}

func railsGone(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Unscoped().Delete(&a).Error)
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
	s.rails.stale(t, "@a.destroy!", "destroy")

	b := s.account(t)
	s.rails.run(t, "@a.destroy!")
	mustBeGone(t, s.db.Model(&b).Update("name", "go").Error)
	mustBeGone(t, s.db.Save(&b).Error)
	mustBeGone(t, s.db.Save([]account{b}).Error)
	mustBeGone(t, s.db.Unscoped().Delete(&b).Error)
	mustBeGone(t, gormlock.Touch(s.db, &b))
	equal(t, "rows", s.rails.number(t, "Account.count"), 0)
}

func railsForm(t *testing.T, s shared) {
	a := s.account(t)
	s.rails.run(t, "@a.update!(name: 'rails')")
	must(t, s.db.First(&a, a.ID).Error)
	// The form was rendered at version 0.
	mustStale(t, s.db.Model(&a).Updates(map[string]any{"name": "form", "lock_version": 0}).Error)
	mustStale(t, s.db.Model(&a).Clauses(gormlock.ExpectVersion(0)).Update("name", "form").Error)
	must(t, s.db.Model(&a).Updates(map[string]any{"name": "form", "lock_version": 1}).Error)
	s.mustHave(t, a.ID, "form", 2)

	s.rails.stale(t, "@a.reload.update!(name: 'rails form', lock_version: 1)", "update")
	s.rails.run(t, "@a.reload.update!(name: 'rails form', lock_version: 2)")
	s.mustHave(t, a.ID, "rails form", 3)
}

func railsNothingChanged(t *testing.T, s shared) {
	c := counter{Name: "new"} // where there is an updated_at GORM writes it, which is a change
	must(t, s.db.Create(&c).Error)
	s.rails.run(t, "@c = Counter.find("+strconv.FormatInt(c.ID, 10)+"); @c.save!")
	must(t, s.db.Model(&c).Updates(map[string]any{}).Error)
	must(t, s.db.Model(&c).Updates(counter{}).Error)
	equal(t, "seen by Rails", s.rails.number(t, "Counter.find(@c.id).lock_version"), 0)
	s.rails.run(t, "@c.update!(name: 'still fresh')")
	mustStale(t, s.db.Model(&c).Update("name", "go").Error)
}

func railsNilVersion(t *testing.T, s shared) {
	a := s.account(t)
	err := s.db.Model(&a).Updates(map[string]any{"name": "x", "lock_version": nil}).Error
	if err == nil || !strings.Contains(err.Error(), "cannot be NULL") {
		t.Error(err)
	}
	if err := s.rails.value("@a.update!(name: 'x', lock_version: nil)", nil); err == nil {
		t.Error("Rails takes nil")
	}
	s.mustHave(t, a.ID, "new", 0)
}

func railsFullSave(t *testing.T, s shared) {
	a := s.account(t)
	s.rails.run(t, "@a.update!(balance: 7)") // another column than Go changes
	a.Name = "go"
	mustStale(t, s.db.Save(&a).Error)
	equal(t, "balance", s.row(t, a.ID).Balance, 7)
	must(t, s.db.First(&a, a.ID).Error)
	a.Name = "go"
	must(t, s.db.Save(&a).Error)
	equal(t, "balance", s.row(t, a.ID).Balance, 7)
	s.rails.stale(t, "@a.update!(balance: 8)", "update")
}

func railsRepeatableRead(t *testing.T, s shared) {
	a := s.account(t)
	err := s.db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.First(&a, a.ID).Error) // the snapshot
		s.rails.run(t, "@a.update!(name: 'rails')")
		return tx.Model(&a).Update("name", "go").Error
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if !gormlock.IsRetryable(err) {
		t.Error("not retryable", err)
	}
	equal[any](t, "actual", mustBeStale(t, err).Actual, nil)
	equal(t, "in memory", a.LockVersion, 0)
	s.mustHave(t, a.ID, "rails", 1)

	s.rails.run(t, `Account.connection.begin_transaction(isolation: :repeatable_read, joinable: false)
		@a.reload`)
	must(t, s.db.First(&a, a.ID).Error)
	must(t, s.db.Model(&a).Update("name", "go").Error)
	_ = s.rails.raises(t, "@a.update!(name: 'lost')", "ActiveRecord::SerializationFailure")
	s.mustHave(t, a.ID, "go", 2)
}

func railsRollback(t *testing.T, s shared) {
	a := s.account(t)
	tx := s.db.Begin()
	must(t, tx.Model(&a).Update("name", "rolled back").Error)
	equal(t, "inside", a.LockVersion, 1)
	must(t, tx.Rollback().Error)
	s.rails.run(t, "@a.update!(name: 'rails')") // also version 1
	a.Name = "lost"
	mustStale(t, s.db.Save(&a).Error)
	s.mustHave(t, a.ID, "rails", 1)
}

func railsTouch(t *testing.T, s shared) {
	a := s.account(t)
	must(t, gormlock.Touch(s.db, &a))
	equal(t, "in memory", a.LockVersion, 1)
	s.rails.stale(t, "@a.touch", "touch")
	s.rails.run(t, "@a.reload.touch")
	equal(t, "seen by Rails", s.rails.number(t, "@a.lock_version"), 2)
	e := mustBeStale(t, gormlock.Touch(s.db, &a))
	equal(t, "op", e.Op, "touch")
	if at := s.row(t, a.ID).UpdatedAt; !at.After(a.UpdatedAt) {
		t.Error("touched at", at, "after", a.UpdatedAt)
	}
}

func railsTouchWithoutTimes(t *testing.T, s shared) {
	c := counter{Name: "c"}
	must(t, s.db.Create(&c).Error)
	s.rails.run(t, "@c = Counter.find("+strconv.FormatInt(c.ID, 10)+")")
	must(t, gormlock.Touch(s.db, &c))
	equal(t, "in memory", c.LockVersion, 1)
	s.rails.stale(t, "@c.update!(name: 'rails')", "update")
}

func railsCounters(t *testing.T, s shared) {
	a := s.account(t)
	s.rails.run(t, "Account.update_counters(@a.id, balance: 5)")
	s.mustHave(t, a.ID, "new", 1)
	mustStale(t, s.db.Model(&a).Update("name", "go").Error)
	s.rails.run(t, "@a.reload.increment!(:balance, 5)")
	must(t, s.db.First(&a, a.ID).Error)
	equal(t, "balance", a.Balance, 110)

	s.rails.run(t, "@a.reload")
	must(t, s.db.Model(&account{}).Where("id = ?", a.ID).UpdateColumn("balance", gorm.Expr("COALESCE(balance, 0) + ?", 1)).Error)
	s.rails.stale(t, "@a.update!(balance: 0)", "update")
	must(t, s.db.Exec("UPDATE accounts SET lock_version = NULL WHERE id = ?", a.ID).Error)
	must(t, s.db.Model(&account{}).Where("id = ?", a.ID).UpdateColumn("balance", gorm.Expr("balance + 1")).Error)
	equal(t, "from NULL", s.version(t, a.ID), sql.NullInt32{Int32: 1, Valid: true})
	s.rails.run(t, "Account.connection.execute('UPDATE accounts SET lock_version = NULL'); Account.update_counters(@a.id, balance: 1)")
	equal(t, "from NULL by Rails", s.version(t, a.ID), sql.NullInt32{Int32: 1, Valid: true})
}

func railsChildren(t *testing.T, s shared) {
	a := s.account(t)
	s.rails.run(t, "@e = @a.entries.create!(text: 'by rails')")
	mustStale(t, s.db.Model(&a).Update("name", "go").Error)
	must(t, s.db.First(&a, a.ID).Error)
	equal(t, "children", a.EntriesCount, 1)
	s.rails.run(t, "@e.update!(text: 'changed')")
	mustStale(t, s.db.Model(&a).Update("name", "go").Error)
	s.rails.run(t, "@e.destroy!; @a.reload")
	mustStale(t, s.db.Model(&a).Update("name", "go").Error)

	// A Go program does the same by hand.
	must(t, s.db.First(&a, a.ID).Error)
	must(t, s.db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Create(&entry{AccountID: a.ID, Text: "by go"}).Error)
		counted := map[string]any{"entries_count": gorm.Expr("COALESCE(entries_count, 0) + 1"), "updated_at": tx.NowFunc()}
		return tx.Model(&account{}).Where("id = ?", a.ID).UpdateColumns(counted).Error
	}))
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
	equal(t, "children", s.rails.number(t, "@a.reload.entries_count"), 1)
	must(t, gormlock.Touch(s.db.Clauses(gormlock.IgnoreVersion()), &account{ID: a.ID}))
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
}

func railsBulk(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Model(&account{}).Where("balance = 100").Updates(map[string]any{"name": "go"}).Error)
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
	s.rails.run(t, "@a.reload; Account.where(balance: 100).update_all(name: 'rails')")
	s.mustHave(t, a.ID, "rails", 2)
	must(t, s.db.First(&a, a.ID).Error)
	s.rails.run(t, "Account.all.touch_all")
	mustStale(t, s.db.Model(&a).Update("name", "go").Error)
	must(t, s.db.Exec("UPDATE accounts SET lock_version = NULL").Error)
	must(t, s.db.Model(&account{}).Where("balance = 100").Update("name", "go").Error)
	equal(t, "from NULL", s.version(t, a.ID), sql.NullInt32{Int32: 1, Valid: true})
}

func railsTrigger(t *testing.T, s shared) {
	a := s.account(t)
	s.rails.run(t, `Account.where(id: @a.id).update_all("name = 'unseen'")`)
	must(t, s.db.Model(&a).Update("balance", 1).Error) // R19: nothing can tell
	s.mustHave(t, a.ID, "unseen", 1)

	must(t, s.db.Exec(gormlock.VersionTrigger("accounts", "lock_version")).Error)
	must(t, s.db.First(&a, a.ID).Error)
	s.rails.run(t, `@a.reload; Account.where(id: @a.id).update_all("name = 'seen'")`)
	mustStale(t, s.db.Model(&a).Update("balance", 2).Error)
	s.rails.stale(t, "@a.update!(balance: 3)", "update")
	s.mustHave(t, a.ID, "seen", 2)
	// Those who move the version themselves are left alone.
	s.rails.run(t, "@a.reload.update!(name: 'rails')")
	s.mustHave(t, a.ID, "rails", 3)
	must(t, s.db.First(&a, a.ID).Error)
	must(t, s.db.Model(&a).Update("name", "go").Error)
	a.Name = "go again"
	must(t, s.db.Save(&a).Error)
	s.mustHave(t, a.ID, "go again", 5)
	equal(t, "in memory", a.LockVersion, 5)
	s.rails.run(t, "@a.reload.update!(name: 'rails')")
}

func railsBulkDelete(t *testing.T, s shared) {
	_ = s.account(t)
	must(t, s.db.Unscoped().Where("balance = 100").Delete(&account{}).Error)
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
	a := s.account(t)
	s.rails.run(t, "Account.where(balance: 100).delete_all")
	mustBeGone(t, s.db.Model(&a).Update("name", "go").Error)
}

func railsDelete(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Model(&a).Update("name", "go").Error)
	s.rails.stale(t, "@a.destroy!", "destroy")
	s.rails.run(t, "@a.reload.update!(name: 'rails')")
	mustStale(t, s.db.Unscoped().Delete(&a).Error)
	s.mustHave(t, a.ID, "rails", 2)
	s.rails.run(t, "@a.destroy!")

	a = s.account(t)
	must(t, s.db.Unscoped().Delete(&a).Error)
	s.rails.stale(t, "@a.destroy!", "destroy")
}

func railsSoftDelete(t *testing.T, s shared) {
	a := s.account(t)
	old := a
	must(t, s.db.Delete(&a).Error)
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
	equal(t, "row", s.row(t, a.ID).DeletedAt.Valid, true)
	mustBeGone(t, s.db.Model(&old).Update("name", "go").Error)

	b := s.account(t)
	s.rails.run(t, "@a.update!(deleted_at: Time.now)") // as the gem discard does
	mustBeGone(t, s.db.Save(&b).Error)
	mustBeGone(t, s.db.Delete(&b).Error)
	s.mustHave(t, b.ID, "new", 1)
}

func railsColumnName(t *testing.T, s shared) {
	d := document{Title: "new"}
	must(t, s.db.Create(&d).Error)
	s.rails.run(t, "@d = Document.find("+strconv.FormatInt(d.ID, 10)+")")
	must(t, s.db.Model(&d).Update("title", "go").Error)
	s.rails.stale(t, "@d.update!(title: 'rails')", "update")
	s.rails.run(t, "@d.reload.update!(title: 'rails')")
	mustStale(t, s.db.Model(&d).Update("title", "go").Error)
}

func railsLargest(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Exec("UPDATE accounts SET lock_version = 2147483647").Error)
	must(t, s.db.First(&a, a.ID).Error)
	must(t, s.db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(&a).Update("name", "go").Error; err == nil || !strings.Contains(err.Error(), "2147483647 is the largest") {
			t.Error(err)
		}
		return tx.Create(&account{Name: "the transaction is usable"}).Error
	}))
	if err := s.rails.value("@a.reload.update!(name: 'rails')", nil); err == nil {
		t.Error("Rails counts on")
	}
	s.mustHave(t, a.ID, "new", 2147483647)
}
