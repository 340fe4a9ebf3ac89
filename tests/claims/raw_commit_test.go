package claims_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A text of the caller that claims a row, outside of a transaction, and whose commit fails: what came back was never stored.
func TestRawClaim_whoseCommitFails(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(db *gorm.DB, into *ticket) error{
		"First": func(db *gorm.DB, into *ticket) error {
			return db.Raw("UPDATE tickets SET state = 'running', version = version + 1 RETURNING *").First(into).Error
		},
		"Find": func(db *gorm.DB, into *ticket) error {
			var all []ticket
			err := db.Raw("UPDATE tickets SET state = 'running', version = version + 1 RETURNING *").Find(&all).Error
			*into = all[0]
			return err
		},
		"generics": func(db *gorm.DB, into *ticket) error {
			all, err := gorm.G[ticket](db).Raw("UPDATE tickets SET state = 'running', version = version + 1 RETURNING *").Find(t.Context())
			if len(all) > 0 {
				*into = all[0]
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := stand.Versioned(t, []any{&ticket{}})
			stand.Must(t, db.Exec(`CREATE FUNCTION nope() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'quota exceeded'; END $$`).Error)
			stand.Must(t, db.Exec(`CREATE CONSTRAINT TRIGGER nope AFTER UPDATE ON tickets DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION nope()`).Error)
			stand.MustDo(t, db.Create(&ticket{State: "ready", Note: "old"}))
			var mine ticket
			if err := read(db, &mine); err == nil {
				t.Fatal("no error")
			}
			stand.MustDo(t, db.Exec("DROP TRIGGER nope ON tickets"))
			stand.MustDo(t, db.Exec("UPDATE tickets SET note = 'rival', version = version + 1"))
			mine.State = "done"
			if err := db.Save(&mine).Error; mine.ID != 0 && !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%+v was saved: %v", mine, err)
			}
		})
	}
}
