package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// GORM adds the key of a struct to the conditions of the chain that writes it. If the chain is used again, both keys must hold,
// and no row has both.
func TestReusedChain(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}, &shelvedPage{}}, func(t *testing.T, db *gorm.DB) {
		rows := []stand.Account{{Balance: 1}, {Balance: 2}, {Balance: 3}}
		stand.Must(t, db.Create(&rows).Error)
		pages := []shelvedPage{{Text: "a"}, {Text: "b"}}
		stand.Must(t, db.Create(&pages).Error)
		for what, write := range map[string]func(chain *gorm.DB, row *stand.Account) *gorm.DB{
			"Update":       func(chain *gorm.DB, row *stand.Account) *gorm.DB { return chain.Model(row).Update("balance", 9) },
			"Update, note": func(chain *gorm.DB, row *stand.Account) *gorm.DB { return chain.Model(row).Update("note", "x") },
			"Updates": func(chain *gorm.DB, row *stand.Account) *gorm.DB {
				return chain.Model(row).Updates(stand.Account{Balance: 9})
			},
			"Update of a slice": func(chain *gorm.DB, row *stand.Account) *gorm.DB {
				return chain.Model(&[]stand.Account{*row}).Update("balance", 9)
			},
		} {
			for kind, chain := range map[string]*gorm.DB{
				"text": db.Where("balance > 0"), "two": db.Where("balance > 0").Where("id > 0"), "columns": db.Where(map[string]any{"id": []int64{1, 2, 3}}),
				"IgnoreVersion": db.Where("balance > 0").Clauses(gormlock.IgnoreVersion()),
			} {
				what := what + ", " + kind
				one, other := stand.Row[stand.Account](t, db, rows[0].ID), stand.Row[stand.Account](t, db, rows[1].ID)
				stand.Equal(t, what, stand.MustDo(t, write(chain, &one)).RowsAffected, 1)
				mustSayReused(t, what, write(chain, &other).Error)
				stand.Equal(t, what, stand.Row[stand.Account](t, db, other.ID), other)
			}
		}
	})
}

func mustSayReused(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "a chain that was used before") || !strings.Contains(err.Error(), "Session(&gorm.Session{") {
		t.Errorf("%s: %v", what, err)
	}
}

// Deletes say so too. A session begins anew each time, and a condition of the caller's own that does not hold is no error.
func TestReusedChain_deletes(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}, &shelvedPage{}}, func(t *testing.T, db *gorm.DB) {
		rows := []stand.Account{{Balance: 1}, {Balance: 2}, {Balance: 3}}
		stand.Must(t, db.Create(&rows).Error)
		pages := []shelvedPage{{Text: "a"}, {Text: "b"}}
		stand.Must(t, db.Create(&pages).Error)
		chain, soft := db.Where("balance > 0"), db.Where("text <> ''")
		stand.Must(t, chain.Delete(&rows[0]).Error)
		mustSayReused(t, "Delete", chain.Delete(&rows[1]).Error)
		stand.Must(t, soft.Delete(&pages[0]).Error)
		mustSayReused(t, "soft delete", soft.Delete(&pages[1]).Error)

		session := db.Where("balance > 0").Session(&gorm.Session{})
		for i := range rows[1:] {
			stand.Equal(t, "a session", stand.MustDo(t, session.Model(&rows[i+1]).Update("balance", 9)).RowsAffected, 1)
		}
		for what, tx := range map[string]*gorm.DB{
			"a column":     db.Where("balance = 1").Model(&rows[1]).Update("balance", 3),
			"Or":           db.Where("balance = 1").Or(map[string]any{"id": rows[2].ID}).Model(&rows[1]).Update("balance", 3),
			"keys":         db.Where("id", []int64{rows[1].ID}).Where("balance = 1").Model(&rows[1]).Update("balance", 3),
			"its own key":  db.Where(&stand.Account{ID: rows[1].ID}).Where("balance = 1").Model(&rows[1]).Update("balance", 3),
			"a sub-query":  db.Where("id IN (?)", db.Model(&stand.Account{}).Select("id").Where("balance = 1")).Model(&rows[1]).Update("balance", 3),
			"a slice":      db.Where("balance = 1").Model(rows[1:]).Update("balance", 3),
			"Delete":       db.Where("balance = 1").Delete(&rows[1]),
			"two and more": db.Where("balance = 1").Where("id = ?", rows[1].ID).Delete(&rows[1]),
		} {
			stand.Equal(t, what, tx.Error, nil)
			stand.Equal(t, what, tx.RowsAffected, 0)
		}
	})
}
