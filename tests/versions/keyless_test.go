package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type keylessMember struct {
	ID      int64
	Email   *string `gorm:"uniqueIndex"`
	Name    string
	Data    string `gorm:"type:jsonb;not null;default:'{}'"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// Structs without a key that a DO NOTHING stored get their keys, although others were left out: by what they hold. If that does not
// tell, the create is an error: the next Save of a struct without its key would store it again.
func TestDoNothing_keysOfWhatWasStored(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&keylessMember{}})
	taken, b, c := "taken", "b", "c"
	stand.Made(t, db, keylessMember{Email: &taken})
	list := []*keylessMember{
		{Email: &taken, Name: "no"}, {Email: &b, Name: "b", Data: `{"x":1}`}, {Name: "twin"}, {Name: "twin"}, {Email: &c, Name: "c", Data: `{ "x":2}`},
	}
	stand.MustDo(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(list))
	stand.Equal(t, "left out", [2]int64{list[0].ID, list[0].Version}, [2]int64{})
	for _, one := range list[1:] {
		row := stand.Row[keylessMember](t, db, one.ID)
		stand.Equal(t, "name", one.Name, row.Name)
		stand.Equal(t, "version", one.Version, 1)
		one.Name += "!"
		stand.MustDo(t, db.Save(one))
	}
	var n int64
	stand.MustDo(t, db.Model(&keylessMember{}).Count(&n))
	stand.Equal(t, "rows", n, 5)

	stand.MustDo(t, db.Exec(`CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name = 'X'; NEW.email = NULL; RETURN NEW; END $$;
		CREATE TRIGGER shout BEFORE INSERT ON keyless_members FOR EACH ROW WHEN (NEW.name <> 'no') EXECUTE FUNCTION shout()`))
	unknown := func() []keylessMember { return []keylessMember{{Email: &taken, Name: "no"}, {Name: "d"}, {Name: "e"}} }
	for name, create := range map[string]func(list *[]keylessMember) error{
		"alone": func(list *[]keylessMember) error {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(list).Error
		},
		"in a transaction": func(list *[]keylessMember) error {
			return db.Transaction(func(tx *gorm.DB) error {
				tx.Clauses(clause.OnConflict{DoNothing: true}).Create(list)
				return nil
			})
		},
	} {
		list := unknown()
		if err := create(&list); err == nil || !strings.Contains(err.Error(), "not known which structs") {
			t.Errorf("%s: %v", name, err)
		}
		stand.MustDo(t, db.Model(&keylessMember{}).Count(&n))
		stand.Equal(t, name+": rows", n, 5)
	}
}
