package versions_test

import (
	"context"
	"database/sql/driver"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type whose struct {
	ID      int64
	Email   string
	Active  bool
	Plan    string
	Locked  bool
	Hash    int    `gorm:"->:false;<-"` // is never read
	Mark    string `gorm:"-"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// An upsert that leaves rows out gives each struct its own row, or is an error: never the row of another struct.
func TestUpsert_givesNoStructTheRowOfAnother(t *testing.T) {
	t.Parallel()
	where := func(text string) clause.Where {
		return clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: text}}}
	}
	unlocked, plan := where("NOT whoses.locked"), clause.AssignmentColumns([]string{"plan"})
	frees := []whose{{Email: "a", Plan: "free"}, {Email: "b", Plan: "free"}}
	byEmail := "CREATE UNIQUE INDEX whose_email ON whoses (email); ALTER TABLE whoses ADD CONSTRAINT by_email UNIQUE USING INDEX whose_email"
	rows := []whose{{Email: "a", Locked: true}, {Email: "b"}}
	for name, c := range map[string]struct {
		ddl      string
		conflict clause.OnConflict
		rows     []whose
		list     []whose
	}{
		"column":     {byEmail, clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, DoUpdates: plan, Where: unlocked}, rows, frees},
		"constraint": {byEmail, clause.OnConflict{OnConstraint: "by_email", DoUpdates: plan, Where: unlocked}, rows, frees},
		"all":        {byEmail, clause.OnConflict{OnConstraint: "by_email", UpdateAll: true, Where: unlocked}, rows, frees},
		"expression": {"CREATE UNIQUE INDEX ON whoses (lower(email))", clause.OnConflict{Columns: []clause.Column{{Name: "lower(email)", Raw: true}}, DoUpdates: plan, Where: unlocked}, rows, frees},
		"partial index": {"CREATE UNIQUE INDEX ON whoses (email) WHERE active",
			clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, TargetWhere: where("active"), DoUpdates: plan, Where: where("whoses.plan < excluded.plan")},
			[]whose{{Email: "a", Active: true, Plan: "z"}}, []whose{{Email: "a", Active: true, Plan: "b"}, {Email: "a", Plan: "b"}}},
		"a column that is not read": {"CREATE UNIQUE INDEX ON whoses (hash)", clause.OnConflict{DoNothing: true},
			[]whose{{Email: "a", Hash: 1}}, []whose{{Email: "a", Hash: 1}, {Email: "a", Hash: 2, Mark: "new"}}},
		"the row of another key": {byEmail, clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, DoUpdates: plan, Where: where("whoses.plan < excluded.plan")},
			[]whose{{ID: 5, Email: "z", Plan: "z"}, {ID: 9, Email: "y", Plan: "a"}, {ID: 10, Email: "w", Plan: "z"}}, []whose{{ID: 5, Email: "y", Plan: "b"}, {Email: "w", Plan: "b"}}},
		"the key of a new row by chance": {byEmail + "; SELECT setval('whoses_id_seq', 6)", clause.OnConflict{DoNothing: true},
			[]whose{{ID: 1, Email: "y"}}, []whose{{ID: 7, Email: "y"}, {Email: "new"}}},
		"the same, beside others": {byEmail + "; SELECT setval('whoses_id_seq', 6)", clause.OnConflict{DoNothing: true},
			[]whose{{ID: 1, Email: "y"}}, []whose{{ID: 7, Email: "y"}, {Email: "new"}, {Email: "y"}, {Email: "more"}, {ID: 20, Email: "mine"}}},
		"a trigger that makes all keys": {byEmail + `; CREATE FUNCTION makes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id = nextval('whoses_id_seq') + 100; RETURN NEW; END $$;
			CREATE TRIGGER makes BEFORE INSERT ON whoses FOR EACH ROW EXECUTE FUNCTION makes()`, clause.OnConflict{DoNothing: true},
			[]whose{{ID: 5, Email: "z"}}, []whose{{ID: 105, Email: "y"}, {Email: "z"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&whose{}})
			stand.MustDo(t, db.Create(&c.rows))
			stand.MustDo(t, db.Exec(c.ddl))
			list := append([]whose{}, c.list...)
			err := db.Clauses(c.conflict).Create(&list).Error
			if err != nil {
				if !strings.Contains(err.Error(), "not known which structs they are") {
					t.Error(err)
				}
				return
			}
			for i, is := range list {
				if is.Version == 0 {
					if is.Email == "new" {
						t.Errorf("struct %d has no row: %+v", i, is)
					}
					continue
				}
				row, sent := stand.Row[whose](t, db, is.ID), c.list[i] // is holds what its row holds
				if row.Email != sent.Email || row.Active != sent.Active || row.Version != is.Version {
					t.Errorf("struct %d was %+v, its row is %+v", i, sent, row)
				}
				var hash int
				stand.MustDo(t, db.Raw("SELECT hash FROM whoses WHERE id = ?", is.ID).Scan(&hash))
				stand.Equal(t, "hash", hash, sent.Hash)
			}
		})
	}
}

// A struct may be in a slice twice, by its pointer.
func TestUpsert_ofOnePointerTwice(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&whose{}})
	stand.MustDo(t, db.Exec("CREATE UNIQUE INDEX ON whoses (email)"))
	p, q := &whose{Email: "p"}, &whose{Email: "q"}
	stand.MustDo(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create([]*whose{p, q, p}))
	for email, is := range map[string]*whose{"p": p, "q": q} {
		stand.Equal(t, "row", stand.Row[whose](t, db, is.ID).Email, email)
		is.Plan = "x"
		stand.MustDo(t, db.Save(is))
	}
	var n int64
	stand.MustDo(t, db.Model(&whose{}).Count(&n))
	stand.Equal(t, "rows", n, 2)
}

// lowered sends itself otherwise than the struct holds it, shouting by an expression.
type lowered string

func (l lowered) Value() (driver.Value, error) { return strings.ToLower(string(l)), nil }

type shouting string

func (s shouting) GormValue(context.Context, *gorm.DB) clause.Expr {
	return clause.Expr{SQL: "upper(?)", Vars: []any{string(s)}}
}

type valuedImport struct {
	ID      int64
	Code    string         `gorm:"uniqueIndex"`
	Tags    []string       `gorm:"serializer:json"`
	Props   map[string]any `gorm:"serializer:json;type:jsonb"`
	Since   int64          `gorm:"serializer:unixtime;type:timestamptz"`
	Email   lowered
	Name    shouting
	Short   string `gorm:"type:varchar(3)"`
	Count   string `gorm:"type:int"`
	Done    string `gorm:"type:boolean"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// Types that make their own values do not keep an import from being stored.
func TestUpsert_ofTypesWithValuesOfTheirOwn(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&valuedImport{}})
	row := func(code string) valuedImport {
		return valuedImport{Code: code, Tags: []string{"x"}, Props: map[string]any{"b": 1, "a": "x"}, Since: 1700000000, Email: "A@B", Name: "ann", Short: "a  ", Count: "08", Done: "t"}
	}
	there := row("a")
	stand.MustDo(t, db.Create(&there))
	list := []valuedImport{row("a"), row("b"), {Code: "c", Count: "1", Done: "true"}}
	stand.MustDo(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&list))
	stand.Equal(t, "left out", list[0].ID, 0)
	for i, code := range []string{1: "b", 2: "c"} {
		if code != "" {
			stand.Equal(t, "code", stand.Row[valuedImport](t, db, list[i].ID).Code, code)
		}
	}
}
