package versions_test

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// The server gives columns back otherwise than they were sent: with the digits of a numeric, the blanks of a char, the spelling of
// jsonb. A row is that of its struct all the same.

// respelled has such a column.
type respelled[T any] struct {
	ID      int64
	Name    string
	X       T
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// spelling is a type of such a column, and values of it that the server writes alike.
type spelling interface {
	run(t *testing.T, db *gorm.DB, ddl, trigger string)
}

type twoSpellings[T any] struct{ one, other T }

func (s twoSpellings[T]) run(t *testing.T, db *gorm.DB, ddl, trigger string) {
	t.Helper()
	for _, text := range []string{
		"CREATE TABLE respelled (id bigserial PRIMARY KEY, name text, x " + ddl + ", version bigint NOT NULL DEFAULT 1)",
		"CREATE TABLE lines (id bigserial PRIMARY KEY, item_id bigint)",
		trigger,
	} {
		stand.MustDo(t, db.Exec(text))
	}
	// the names are those that the structs were sent with: afterwards they hold what their rows hold
	isRow := func(what, names string, list ...*respelled[T]) {
		t.Helper()
		for i, item := range list {
			var row respelled[T]
			stand.MustDo(t, db.First(&row, item.ID))
			if row.Name != names[i:i+1] || row.Version != item.Version {
				t.Errorf("%s, %s: struct %d is %+v, its row %+v", ddl, what, i, item, row)
			}
		}
	}
	read := func() respelled[T] {
		stand.MustDo(t, db.Where("true").Delete(&respelled[T]{}))
		stand.MustDo(t, db.Create(&respelled[T]{Name: "a", X: s.one}))
		var item respelled[T]
		stand.MustDo(t, db.First(&item))
		return item
	}
	// DO NOTHING of a struct that was read, and of a new one with the same columns
	for _, value := range []T{s.one, s.other} {
		list := []respelled[T]{read(), {Name: "a", X: value}}
		was := list[0].ID
		stand.MustDo(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&list))
		isRow("do nothing", "aa", &list[0], &list[1])
		stand.Equal(t, "the key of the one that was read", list[0].ID, was)
		slices.Reverse(list)
		list = append(list, respelled[T]{Name: "a", X: value})
		stand.MustDo(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&list))
		isRow("do nothing", "aaa", &list[0], &list[1], &list[2])
	}
	// associations
	item := read()
	lines := []respelledLine[T]{{Item: &item}, {Item: &respelled[T]{Name: "d", X: s.other}}}
	stand.MustDo(t, db.Create(&lines))
	isRow("belongs to", "ad", lines[0].Item, lines[1].Item)
	// an import that leaves a row out, and has one value in two spellings
	stand.MustDo(t, db.Exec("TRUNCATE respelled; CREATE UNIQUE INDEX ON respelled (name)"))
	for name, conflict := range map[string]clause.OnConflict{
		"do nothing": {Columns: []clause.Column{{Name: "name"}}, DoNothing: true},
		"do update where": {Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"x"}),
			Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "respelled.name <> 'a'"}}}},
	} {
		read()
		list := []respelled[T]{{Name: "a", X: s.one}, {Name: "b", X: s.one}, {Name: "c", X: s.other}, {Name: "d", X: s.other}}
		stand.MustDo(t, db.Clauses(conflict).Create(&list))
		isRow(name, "bcd", &list[1], &list[2], &list[3])
		stand.Equal(t, "left out", list[0].ID, 0)
	}
}

func (respelled[T]) TableName() string { return "respelled" }

type respelledLine[T any] struct {
	ID     int64
	ItemID int64
	Item   *respelled[T]
}

func (respelledLine[T]) TableName() string { return "lines" }

func TestRespelled_rowsOfStructs(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 30, 15, 123456789, time.UTC)
	kinds := map[string]spelling{
		"numeric(12,2)":  twoSpellings[string]{"10", "10.00"},
		"char(3)":        twoSpellings[string]{"a", "a "},
		"varchar(3)":     twoSpellings[string]{"a", "a"},
		"text":           twoSpellings[string]{"a", "a"},
		"jsonb":          twoSpellings[json.RawMessage]{json.RawMessage(`{"a":1,"b":2}`), json.RawMessage(`{"b": 2, "a": 1}`)},
		"json":           twoSpellings[json.RawMessage]{json.RawMessage(`{"a":1}`), json.RawMessage(`{"a":1}`)},
		"date":           twoSpellings[time.Time]{noon, noon.Add(time.Hour)},
		"timestamptz":    twoSpellings[time.Time]{noon, noon.Add(time.Nanosecond)},
		"timestamptz(0)": twoSpellings[sql.NullTime]{sql.NullTime{Time: noon, Valid: true}, sql.NullTime{Time: noon.Add(time.Nanosecond), Valid: true}},
		"numeric(6,1)":   twoSpellings[float64]{1.25, 1.3},
		"real":           twoSpellings[float64]{0.1, 0.1},
		"uuid":           twoSpellings[string]{"ABCDEF00-0000-4000-8000-000000000001", "{abcdef00000040008000000000000001}"},
		"interval":       twoSpellings[*string]{text("1 day"), text("1d")},
		"inet":           twoSpellings[string]{"10.0.0.1/32", "10.0.0.1"},
		"money":          twoSpellings[string]{"10", "$10.00"},
		"bytea":          twoSpellings[[]byte]{[]byte("a"), []byte("a")},
	}
	const moves = `CREATE FUNCTION moves() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.version = 1; RETURN NEW; END $$;
		CREATE TRIGGER moves BEFORE INSERT ON respelled FOR EACH ROW EXECUTE FUNCTION moves()`
	for name, trigger := range map[string]string{"": "SELECT 1", "with a trigger ": moves} {
		for ddl, kind := range kinds {
			t.Run(name+ddl, func(t *testing.T) {
				t.Parallel()
				kind.run(t, stand.Open(t), ddl, trigger)
			})
		}
	}
}

type pricedItem struct {
	ID      int64
	Name    string
	Price   string `gorm:"type:numeric(12,2)"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

type pricedCart struct {
	ID      int64
	Items   []pricedItem `gorm:"many2many:priced_cart_items"`
	Version int64        `gorm:"not null;default:1" gormlock:"version"`
}

// A cart has an item that was read, and gets new ones of the same price.
func TestRespelled_linkedItems(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&pricedItem{}, &pricedCart{}})
	stand.MustDo(t, db.Create(&pricedCart{Items: []pricedItem{{Name: "a", Price: "10"}}}))
	var cart pricedCart
	stand.MustDo(t, db.Preload("Items").First(&cart))
	cart.Items = append(cart.Items, pricedItem{Name: "b", Price: "10"}, pricedItem{Name: "c", Price: "10.0"})
	stand.MustDo(t, db.Save(&cart))
	stand.Must(t, db.Model(&cart).Association("Items").Append(&pricedItem{Name: "d", Price: "10"}))
	for i := range cart.Items {
		stand.Equal(t, "name", stand.Row[pricedItem](t, db, cart.Items[i].ID).Name, string('a'+rune(i)))
	}
	stand.Equal(t, "linked", db.Model(&cart).Association("Items").Count(), 4)
}

type imported struct {
	ID      int64
	Code    string `gorm:"uniqueIndex"`
	Price   string `gorm:"type:numeric(12,2)"`
	Sold    time.Time
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// The rows of a large import of which half is there are found in a time that grows with their number, not with its square.
func TestRespelled_importOfThousands(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&imported{}})
	takes := func(n int) time.Duration {
		stand.MustDo(t, db.Exec("TRUNCATE importeds"))
		all := make([]imported, n)
		for i := range all {
			all[i] = imported{Code: strconv.Itoa(i), Price: strconv.Itoa(i % 7), Sold: time.Unix(int64(i), 7)}
		}
		half := slices.Clone(all[n/2:])
		stand.MustDo(t, db.Create(&half))
		all[n-1].ID = half[len(half)-1].ID
		began := time.Now()
		stand.MustDo(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&all))
		took := time.Since(began)
		for i := range all {
			is, isNew := all[i], i < n/2
			if isNew != (is.ID != 0) && i != n-1 {
				t.Fatalf("%d of %d: %+v", i, n, is)
			}
			if isNew && i%100 == 0 {
				stand.Equal(t, "code", stand.Row[imported](t, db, is.ID).Code, strconv.Itoa(i))
			}
		}
		return took
	}
	takes(100)
	if few, many := takes(1000), takes(8000); many > 30*few {
		t.Errorf("1,000 rows take %s, 8,000 take %s", few, many)
	}
}

func text(s string) *string { return &s }
