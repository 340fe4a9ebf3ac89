package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// What is given to Append keeps the version that it was read with when the attempt is rolled back, so the next one is compared with what another
// writer has done meanwhile.
func TestRollback_ofAnAppendIsComparedInTheNext(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&copyOwner{}, &copyKid{}, &copyTag{}})
	for association, rivals := range map[string][]string{
		"Kids": {"DELETE FROM copy_kids WHERE id = ?", "UPDATE copy_kids SET owner_id = NULL, text = 'rival', version = version + 1 WHERE id = ?"},
		"Tags": {"DELETE FROM copy_tags WHERE id = ?"},
	} {
		for _, rival := range rivals {
			for _, first := range []string{"refused", "rolled back"} {
				from, to := copyOwner{Kids: []copyKid{{Text: "a"}}}, copyOwner{Kids: []copyKid{{Text: "b"}}}
				stand.MustDo(t, db.Create(&from))
				stand.MustDo(t, db.Create(&to))
				kid, tag := from.Kids[0], stand.Made(t, db, copyTag{Text: "a"})
				given := map[string]any{"Kids": &kid, "Tags": &tag}[association]
				id := map[string]int64{"Kids": kid.ID, "Tags": tag.ID}[association]
				attempt := func(end error) error {
					return db.Transaction(func(tx *gorm.DB) error {
						var owner copyOwner // read in each attempt
						stand.MustDo(t, tx.First(&owner, to.ID))
						if err := tx.Model(&owner).Association(association).Append(given); err != nil {
							return err
						}
						return end
					})
				}
				if first == "refused" {
					stand.MustDo(t, db.Exec(rival, id))
					stand.MustStale(t, attempt(nil))
				} else {
					if err := attempt(errUndo); !errors.Is(err, errUndo) {
						t.Errorf("%s, %s: %v", association, first, err)
					}
					stand.MustDo(t, db.Exec(rival, id))
				}
				if err := attempt(nil); !errors.Is(err, gormlock.ErrStale) {
					t.Errorf("%s, %s, %s: %v", association, rival, first, err)
				}
			}
		}
	}
}

// Where versions start at 0, what is given to Append counts as read. What a rollback leaves without a row does not: another writer's may get its key.
func TestRollback_ofAnAppendWhereVersionsStartAtZero(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&railsAppendOwner{}, &railsAppendKid{}, &railsAppendTag{}})
	owner, other := railsAppendOwner{}, railsAppendOwner{Kids: []railsAppendKid{{Text: "old"}}}
	stand.MustDo(t, db.Create(&owner))
	stand.MustDo(t, db.Create(&other))
	made, read := railsAppendKid{Text: "new"}, other.Kids[0]
	attempt := func(kid *railsAppendKid, end error) error {
		return db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Model(&owner).Association("Kids").Append(kid); err != nil {
				return err
			}
			return end
		})
	}
	for _, kid := range []*railsAppendKid{&made, &read} {
		if err := attempt(kid, errUndo); !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
	}
	stand.MustDo(t, db.Create(&railsAppendKid{ID: made.ID, OwnerID: other.ID, Text: "rival"}))
	for _, kid := range []railsAppendKid{made, owner.Kids[0]} {
		stand.Equal(t, "the key", kid.ID, made.ID)
		stand.MustBeUnread(t, db.Save(&kid).Error)
	}
	stand.MustDo(t, db.Model(&railsAppendKid{}).Where("id = ?", read.ID).Update("text", "rival"))
	stand.MustStale(t, attempt(&read, nil))
}
