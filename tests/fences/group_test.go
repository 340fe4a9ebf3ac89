package fences_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// groupedPage has all that a clause can ask about.
type groupedPage struct {
	ID      int64
	Text    string
	Fence   int64     `gormlock:"fence,key=grouped"`
	Version time.Time `gorm:"type:timestamptz(6)" gormlock:"version"`
}

// A group of conditions asks for no more than its statement: what it asks besides is an error, since GORM takes only the conditions from it.
func TestGroup_asksWhatItsStatementAsks(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&groupedPage{}})
	earlier, token := stand.Issue(t, db, "grouped"), stand.Issue(t, db, "grouped")
	guarded := stand.With(db, token).Session(&gorm.Session{})
	read := stand.Made(t, guarded, groupedPage{Text: "a"})
	at := read.Version
	undone := errors.New("undone")
	for name, ask := range map[string]struct {
		on               *gorm.DB
		asks, same, more clause.Expression
	}{
		"Fence":           {db, gormlock.Fence(token), gormlock.Fence(token), gormlock.Fence(earlier)},
		"IgnoreFence":     {db, gormlock.IgnoreFence(), gormlock.IgnoreFence(), gormlock.Fence(token)},
		"a token":         {db, gormlock.Fence(token), gormlock.Fence(token), gormlock.IgnoreFence()},
		"IgnoreVersion":   {guarded, gormlock.IgnoreVersion(), gormlock.IgnoreVersion(), gormlock.ExpectVersion(at)},
		"ExpectVersion":   {guarded, gormlock.ExpectVersion(at), gormlock.ExpectVersion(at.In(time.FixedZone("", 3600))), gormlock.ExpectVersion(at.Add(time.Second))},
		"a version":       {guarded, gormlock.ExpectVersion(at), gormlock.ExpectVersion(&at), gormlock.IgnoreVersion()},
		"no version":      {guarded, gormlock.IgnoreVersion(), gormlock.IgnoreVersion(), gormlock.PreserveVersion()},
		"PreserveVersion": {guarded, gormlock.PreserveVersion(), gormlock.PreserveVersion(), gormlock.IgnoreVersion()},
	} {
		write := func(group clause.Expression) (err error) {
			if back := ask.on.Transaction(func(tx *gorm.DB) error {
				conditions := ask.on.Clauses(group).Where("id = ?", read.ID).Where("text = 'a'")
				err = tx.Clauses(ask.asks).Model(&groupedPage{}).Where(conditions).Update("text", "a").Error
				return undone
			}); !errors.Is(back, undone) {
				t.Error(back)
			}
			return err
		}
		if err := write(ask.same); err != nil {
			t.Errorf("%s, and the same in a group: %v", name, err)
		}
		if err := write(ask.more); err == nil {
			t.Errorf("%s, and more in a group: no error", name)
		}
	}
}
