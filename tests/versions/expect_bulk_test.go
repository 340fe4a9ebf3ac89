package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A bulk statement with ExpectVersion writes the rows at that version. If it writes none the error says whether there was any.
func TestExpectVersion_ofABulkStatement(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&[]stand.Account{{ID: 1, Note: "a"}, {ID: 2, Note: "a"}, {ID: 3, Note: "b"}, {ID: 4, Note: "b"}, {ID: 5, Note: "c"}}).Error)
		stand.Must(t, db.Model(&stand.Account{}).Where("id IN ?", []int64{2, 3, 4, 5}).Update("balance", 1).Error)
		at := func(version int64, note string) *gorm.DB {
			return db.Clauses(gormlock.ExpectVersion(version)).Model(&stand.Account{}).Where("note = ?", note)
		}
		fewer := at(1, "a").Update("balance", 9)
		stand.Must(t, fewer.Error)
		stand.Equal(t, "rows at the version", fewer.RowsAffected, 1)

		for name, c := range map[string]struct {
			err  error
			want string
		}{
			"several, at other versions": {at(7, "b").Update("balance", 9).Error, "gormlock: accounts: version 7 is stale"},
			"one, at another version":    {at(7, "c").Update("balance", 9).Error, "gormlock: accounts id=5: version 7 is stale, the row is at 2: the row has not been at the expected version yet: is it that of another row?"},
			"none":                       {at(5, "z").Update("balance", 9).Error, "gormlock: accounts: no row fits the conditions, at version 5 or any other"},
			"none to delete":             {at(5, "z").Delete(&stand.Account{}).Error, "gormlock: accounts: no row fits the conditions, at version 5 or any other"},
			"none, by gorm.G": {
				stand.ErrorOf(gorm.G[stand.Account](db, gormlock.ExpectVersion(5)).Where("note = 'z'").Update(t.Context(), "balance", 9)),
				"gormlock: accounts: no row fits the conditions, at version 5 or any other",
			},
		} {
			if !errors.Is(c.err, gormlock.ErrStale) {
				t.Errorf("%s: %v", name, c.err)
				continue
			}
			stand.Equal(t, name, c.err.Error(), c.want)
		}
		unchanged := db.Clauses(gormlock.IfUnchanged(&stand.Account{Balance: 9}, "balance")).Model(&stand.Account{}).Where("note = 'z'").Update("balance", 1).Error
		if !errors.Is(unchanged, gormlock.ErrStale) {
			t.Fatal(unchanged)
		}
		stand.Equal(t, "IfUnchanged", unchanged.Error(), "gormlock: accounts: no row fits the conditions")
	})
}
