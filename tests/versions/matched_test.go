package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type matchedMember struct {
	ID      int64
	Email   string `gorm:"uniqueIndex:one_active,where:active"`
	Active  bool
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// The columns of a conflict do not tell whose row came back if the index has a condition.
func TestUpsert_rowsByAPartialIndex(t *testing.T) {
	t.Parallel()
	conflict := clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "active"}}}}
	skips, updates := conflict, conflict
	skips.DoNothing, updates.UpdateAll = true, true
	updates.Where = clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "matched_members.name < excluded.name"}}}
	for name, c := range map[string]clause.OnConflict{"DO NOTHING": skips, "DO UPDATE WHERE": updates} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&matchedMember{}})
			stand.Made(t, db, matchedMember{Email: "x", Active: true, Name: "old"})
			list := []matchedMember{{Email: "x", Active: true, Name: "b"}, {Email: "x", Name: "a"}}
			stand.MustDo(t, db.Clauses(c).Create(&list))
			stand.Equal(t, "left out", list[0].ID, 0)
			stand.Equal(t, "stored", list[1], stand.Row[matchedMember](t, db, list[1].ID))

			omitted := []matchedMember{{Email: "x", Active: true, Name: "b"}, {Email: "y", Active: true, Name: "c"}}
			stand.MustDo(t, db.Clauses(c).Omit("Name").Create(&omitted))
			stand.Equal(t, "an omitted column", stand.Row[matchedMember](t, db, omitted[1].ID).Email, "y")
		})
	}
}

type matchedCode struct {
	ID      int64
	Code    string `gorm:"uniqueIndex;default:lower('GEN')"`
	Name    string
	Lowers  bool  `gorm:"-"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (m *matchedCode) BeforeCreate(*gorm.DB) error {
	if m.Lowers {
		m.Code = strings.ToLower(m.Code)
	}
	return nil
}

// A hook, a default or a trigger may change the column of the conflict: then the other columns tell, or it is an error.
func TestUpsert_rowsByAChangedColumn(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&matchedCode{}})
	byCode := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, DoNothing: true}).Session(&gorm.Session{})
	for name, list := range map[string][]matchedCode{
		"hook":    {{Code: "X", Name: "a", Lowers: true}, {Code: "x", Name: "b"}},
		"default": {{Name: "a"}, {Code: "gen", Name: "b"}},
	} {
		stand.MustDo(t, byCode.Create(&list))
		stand.Equal(t, name+": left out", list[1].ID, 0)
		stand.Equal(t, name+": stored", stand.Row[matchedCode](t, db, list[0].ID).Name, "a")
	}
	stand.MustDo(t, db.Exec(`CREATE FUNCTION low() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.code = lower(NEW.code); RETURN NEW; END $$;
		CREATE TRIGGER low BEFORE INSERT ON matched_codes FOR EACH ROW EXECUTE FUNCTION low()`))
	list := []matchedCode{{Code: "Y", Name: "a"}, {Code: "y", Name: "b"}}
	if err := byCode.Create(&list).Error; err == nil || !strings.Contains(err.Error(), "not known which structs") {
		t.Errorf("trigger: %v, %+v", err, list)
	}
	var n int64
	stand.MustDo(t, db.Model(&matchedCode{}).Where("code = 'y'").Count(&n))
	stand.Equal(t, "stored by the trigger", n, 0)
}

type matchedKey struct {
	ID      string `gorm:"type:uuid;primaryKey;default:gen_random_uuid()"`
	Email   string `gorm:"uniqueIndex"`
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A row whose key the server spells otherwise, or makes, is not that of a struct without a key.
func TestUpsert_rowsOfOtherKeys(t *testing.T) {
	t.Parallel()
	skips := clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, DoNothing: true}
	updates := clause.OnConflict{Columns: skips.Columns, UpdateAll: true, Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "matched_keys.name < excluded.name"}}}}
	db := stand.Versioned(t, []any{&matchedKey{}})
	const key = "ABCDEF00-0000-4000-8000-000000000001"
	store := func(t *testing.T, name string, c clause.OnConflict, list []matchedKey) {
		t.Helper()
		stand.MustDo(t, db.Where("true").Delete(&matchedKey{}))
		stand.Made(t, db, matchedKey{Email: "x", Name: "old"})
		stand.MustDo(t, db.Clauses(c).Create(&list))
		for i := range list {
			var stored matchedKey
			stand.MustDo(t, db.Where("email = ? AND name = ?", list[i].Email, list[i].Name).Limit(1).Find(&stored))
			if list[i].Version != stored.Version || stored.ID != "" && !strings.EqualFold(list[i].ID, stored.ID) {
				t.Errorf("%s: %d: %+v, stored %+v", name, i, list[i], stored)
			}
		}
	}
	for name, c := range map[string]clause.OnConflict{"DO NOTHING": {DoNothing: true}, "email": skips, "DO UPDATE WHERE": updates} {
		store(t, name, c, []matchedKey{{ID: key, Email: "y", Name: "a"}, {Email: "x", Name: "b"}})
		store(t, name+", in turn", c, []matchedKey{{Email: "x", Name: "b"}, {ID: key, Email: "y", Name: "a"}, {Email: "z", Name: "c"}})
		store(t, name+", left out", c, []matchedKey{{ID: key, Email: "x", Name: "b"}, {Email: "y", Name: "a"}, {Email: "z", Name: "a"}})
	}
	stand.MustDo(t, db.Exec(`CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id = gen_random_uuid(); RETURN NEW; END $$;
		CREATE TRIGGER own BEFORE INSERT ON matched_keys FOR EACH ROW EXECUTE FUNCTION own()`))
	for name, c := range map[string]clause.OnConflict{"DO NOTHING": {DoNothing: true}, "email": skips} {
		store(t, name+", a trigger", c, []matchedKey{{ID: key, Email: "y", Name: "a"}, {Email: "x", Name: "b"}})
		store(t, name+", a trigger, in turn", c, []matchedKey{{Email: "x", Name: "b"}, {ID: key, Email: "y", Name: "a"}, {Email: "z", Name: "c"}})
	}
}
