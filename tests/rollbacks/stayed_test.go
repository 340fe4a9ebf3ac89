package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// staying are writes that leave the version as it was.
var staying = map[string]func(tx *gorm.DB, own *stand.Account) error{
	"of a column without a version": func(tx *gorm.DB, own *stand.Account) error { return tx.Model(own).Update("note", "seen").Error },
	"that preserves the version": func(tx *gorm.DB, own *stand.Account) error {
		return tx.Clauses(gormlock.PreserveVersion()).Model(own).Update("balance", 20).Error
	},
	"by SaveMerged": func(tx *gorm.DB, own *stand.Account) error {
		base := *own
		own.Note = "seen"
		return gormlock.SaveMerged(tx, own, &base)
	},
	"by SaveMerged, of nothing": func(tx *gorm.DB, own *stand.Account) error {
		base := *own
		return gormlock.SaveMerged(tx, own, &base)
	},
	"that deletes": func(tx *gorm.DB, own *stand.Account) error { return tx.Delete(own).Error },
	"that does nothing": func(tx *gorm.DB, own *stand.Account) error {
		return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(own).Error
	},
}

// A write that leaves the version as it was is rolled back. Another struct of the row, which the program has changed, keeps its version, by
// whatever name its table was called.
func TestRollback_ofAWriteThatLeavesTheVersion(t *testing.T) {
	t.Parallel()
	for name, write := range staying {
		for by, named := range map[string]func(tx *gorm.DB) *gorm.DB{
			"":              func(tx *gorm.DB) *gorm.DB { return tx },
			", by its view": func(tx *gorm.DB) *gorm.DB { return tx.Table("accounts_seen") },
		} {
			for _, changed := range []string{"", ", changed"} {
				t.Run(name+by+changed, func(t *testing.T) {
					t.Parallel()
					db := accountsOf(t)
					stand.MustDo(t, db.Exec("CREATE OR REPLACE VIEW accounts_seen AS SELECT * FROM accounts"))
					var own, other stand.Account
					stand.MustDo(t, db.First(&own, 1))
					err := db.Transaction(func(tx *gorm.DB) error {
						stand.MustDo(t, named(tx).First(&other, 1))
						if changed != "" {
							other.Balance++
						}
						stand.Must(t, write(tx, &own))
						return errUndo
					})
					if !errors.Is(err, errUndo) {
						t.Fatal(err)
					}
					other.Note = "again"
					stand.MustDo(t, db.Save(&other))
				})
			}
		}
	}
}

// ApartTally has its version behind a pointer.
type ApartTally struct {
	ID   int64
	Name *string
	N    *int64
	*ApartVersion
}

// ApartVersion is exported, or GORM would not see it.
type ApartVersion struct {
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A copy shares the embedded struct that has the version, and stands where the transaction has read its row. Both are taken back.
func TestRollback_ofACopyThatSharesItsVersion(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&ApartTally{}})
	stand.MustDo(t, db.Exec("INSERT INTO apart_tallies (id, n, version) VALUES (1, 1, 1), (2, 1, 1)"))
	var one, other ApartTally
	stand.MustDo(t, db.First(&one, 1))
	err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&one).Update("n", 5))
		stand.MustDo(t, tx.First(&other, 1))
		other = one
		name := "changed"
		one.Name = &name
		return errors.Join(errUndo, tx.Save([]*ApartTally{&one, {ID: 2, ApartVersion: &ApartVersion{Version: 9}}}).Error)
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	stand.MustDo(t, db.Exec("UPDATE apart_tallies SET n = 50, version = version + 1"))
	for _, at := range []*ApartTally{&one, &other} {
		if err := db.Save(at).Error; err == nil {
			t.Errorf("overwritten by version %d", at.Version)
		}
	}
}
