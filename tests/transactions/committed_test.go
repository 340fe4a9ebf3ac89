package transactions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// What waits for a commit is called after it, and never after a rollback, be it to a savepoint.
func TestAfterCommit(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()))
	boom := errors.New("boom")
	var told []string
	tell := func(tx *gorm.DB, what string) {
		if !journal.AfterCommit(tx.Statement, func() { told = append(told, what) }) {
			t.Errorf("%s: nobody sees the end", what)
		}
	}
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		tell(tx, "outer")
		_ = tx.Transaction(func(tx *gorm.DB) error { tell(tx, "rolled back"); return boom })
		stand.Must(t, tx.Transaction(func(tx *gorm.DB) error { tell(tx, "inner"); return nil }))
		stand.Equal(t, "before the commit", len(told), 0)
		return nil
	}))
	_ = db.Transaction(func(tx *gorm.DB) error { tell(tx, "never"); return boom })
	if len(told) != 2 || told[0] != "outer" || told[1] != "inner" {
		t.Errorf("told %q", told)
	}
	if journal.AfterCommit(db.Statement, func() {}) {
		t.Error("there is no transaction")
	}
}
