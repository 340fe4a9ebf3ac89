package tests

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// gorm.G starts a session without the scopes and clauses of its db, before any plugin could see them. The README and
// WithXactLock warn of it.
func TestG19_GenericsDropWhatStandsOnTheirDB(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	type note struct{ ID int64 }
	if err := db.AutoMigrate(&note{}); err != nil {
		t.Fatal(err)
	}
	key := pgtest.Key(t)
	for name, door := range map[string]struct {
		on    func(tx *gorm.DB) gorm.Interface[note]
		locks bool
	}{
		"a scope on the db":  {func(tx *gorm.DB) gorm.Interface[note] { return gorm.G[note](tx.Scopes(gormlock.WithXactLock(key))) }, false},
		"a clause on the db": {func(tx *gorm.DB) gorm.Interface[note] { return gorm.G[note](tx.Clauses(gormlock.XactLock(key))) }, false},
		"a clause for G":     {func(tx *gorm.DB) gorm.Interface[note] { return gorm.G[note](tx, gormlock.XactLock(key)) }, true},
	} {
		err := db.Transaction(func(tx *gorm.DB) error {
			if _, err := door.on(tx).Find(t.Context()); err != nil {
				return err
			}
			if held := pgtest.Held(t, key); held != door.locks {
				t.Errorf("%s: held %t, documented %t", name, held, door.locks)
			}
			return nil
		})
		if err != nil {
			t.Error(name, err)
		}
	}
}
