package versions_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// money is a scanner that keeps what it holds in a place of its own, as decimals do.
type money struct{ text *string }

func (m *money) Scan(value any) error {
	switch v := value.(type) {
	case string:
		m.text = &v
	case nil:
		m.text = nil
	default:
		return fmt.Errorf("%T is no money", value)
	}
	return nil
}

func (m money) Value() (driver.Value, error) {
	if m.text == nil {
		return "0", nil
	}
	return *m.text, nil
}

// document is JSON that is sent by an expression, as the types of gorm.io/datatypes are.
type document []byte

func (d *document) Scan(value any) error {
	switch v := value.(type) {
	case []byte:
		*d = slices.Clone(v)
	case string:
		*d = document(v)
	case nil:
		*d = nil
	default:
		return errors.New("no document")
	}
	return nil
}

func (d document) GormValue(context.Context, *gorm.DB) clause.Expr {
	return gorm.Expr("?::jsonb", string(d))
}

type word string

type upper string

func (u upper) Value() (driver.Value, error) { return strings.ToUpper(string(u)), nil }

// heldRow has a column of many types, and fields that fit them.
type heldRow struct {
	ID        int64
	Big       int64   `gorm:"type:bigint"`
	Small     int16   `gorm:"type:smallint"`
	Natural   uint32  `gorm:"type:bigint"`
	Double    float64 `gorm:"type:double precision"`
	Real      float32 `gorm:"type:real"`
	Numeric   float64 `gorm:"type:numeric(12,2)"`
	Exact     string  `gorm:"type:numeric"`
	Text      string  `gorm:"type:text"`
	Char      string  `gorm:"type:char(5)"`
	Word      word    `gorm:"type:varchar(40)"`
	Upper     upper   `gorm:"type:text"`
	Flag      bool
	BigAt     *int64   `gorm:"type:bigint"`
	TextAt    *string  `gorm:"type:text"`
	FlagAt    *bool    `gorm:"type:boolean"`
	RealAt    *float64 `gorm:"type:double precision"`
	NullBig   sql.NullInt64
	NullText  sql.NullString
	NullFlag  sql.NullBool
	At        time.Time       `gorm:"type:timestamptz"`
	PlainAt   time.Time       `gorm:"type:timestamp"`
	AtPointer *time.Time      `gorm:"type:timestamptz"`
	Day       time.Time       `gorm:"type:date"`
	Unix      int64           `gorm:"type:timestamptz;serializer:unixtime"`
	Bytes     []byte          `gorm:"type:bytea"`
	Raw       json.RawMessage `gorm:"type:jsonb"`
	Document  document        `gorm:"type:jsonb"`
	Map       map[string]int  `gorm:"type:jsonb;serializer:json"`
	Money     money           `gorm:"type:numeric"`
	MoneyAt   *money          `gorm:"type:numeric"`
	UUID      string          `gorm:"type:uuid;default:'00000000-0000-0000-0000-000000000001'"`
	Version   int64           `gormlock:"version"`
}

func ref[T any](value T) *T { return &value }

// heldValues are values that programs put into maps and forms.
func heldValues() []any {
	at := time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)
	elsewhere := at.In(time.FixedZone("", 2*3600))
	twelve := "12"
	values := []any{
		nil, 42, int8(7), int16(-3), int32(9), int64(1 << 40), uint(6), uint8(3), uint16(4), uint64(5), 0, 1, -1, true, false,
		float32(0.1), 0.1, 42.0, 1.5, 2.5, 1e18, 0.005,
		"42", "010", " 42 ", "08", "1e1", "0x1f", "1_000", "yes", "on", " true", "t", "x", "", "a  ", "1.50", "1.005", "NaN", "null",
		json.Number("42"), json.Number("1.5"), json.Number("0.1"), ref(json.Number("42")),
		[]byte("42"), []byte("010"), []byte(`{"x":2}`), []byte(`\x41`), `\x41`, []byte{0, 1, 255},
		word("w"), word("42"), upper("u"), ref("p"), ref(42), ref(int64(43)), ref(true), ref(1.5), ref(ref(int64(44))), ref(ref("pp")),
		(*int64)(nil), (*string)(nil), (*bool)(nil), (*time.Time)(nil), (*money)(nil), (*float64)(nil),
		sql.NullInt64{Int64: 42, Valid: true}, sql.NullInt64{}, sql.NullString{String: "s", Valid: true}, sql.NullString{}, sql.NullBool{Bool: true, Valid: true},
		sql.NullTime{Time: at, Valid: true}, sql.NullTime{}, sql.NullFloat64{Float64: 1.5, Valid: true},
		at, elsewhere, &at, at.Add(1234), time.Time{}, at.Unix(), "2024-01-02 03:04:05", "2024-01-02 03:04", "today", "2024-01-02T03:04:05+02:00", "Jan 2 2024", "2024-01-02",
		map[string]any{"x": 2}, map[string]int{"x": 2}, struct{ X int }{2}, `{"x":2}`, `{"x": 2}`, json.RawMessage(`{"x":2}`), document(`{"x":2}`), ref(document(`{"x":2}`)), []int{1, 2}, "[1, 2]",
		money{&twelve}, &money{&twelve}, money{}, "0012",
		"AAAAAAAA-0000-0000-0000-000000000002", "aaaaaaaa-0000-0000-0000-000000000002", "{aaaaaaaa00000000000000000000000a}",
		gorm.Expr("NULL"), gorm.Expr("DEFAULT"),
	}
	return values
}

// Whatever a map or a form gives for a column, whatever GORM makes of it for the struct, and whatever the server does: a
// struct with the row's version holds the row, or exactly what was sent.
func TestV25_ValuesReadDifferently(t *testing.T) {
	t.Parallel()
	for _, mode := range stand.Modes[1:3] {
		t.Run(mode.Name, func(t *testing.T) {
			t.Parallel()
			valuesReadDifferently(t, stand.Versioned(t, []any{&heldRow{}}, mode.Opts...))
		})
	}
}

func valuesReadDifferently(t *testing.T, db *gorm.DB) {
	ways := map[string]func(row *heldRow, column string, value any) error{
		"map": func(row *heldRow, column string, value any) error {
			return db.Model(row).Updates(map[string]any{column: value}).Error
		},
		"form": func(row *heldRow, column string, value any) error {
			return db.Model(row).Select(column).Updates(formOf(column, value)).Error
		},
		"struct": func(row *heldRow, column string, value any) error {
			form, err := heldRow{}, errors.New("not for such a field")
			if place := reflect.ValueOf(&form).Elem().FieldByName(column); value != nil && reflect.TypeOf(value).AssignableTo(place.Type()) {
				place.Set(reflect.ValueOf(value))
				err = db.Model(row).Select(column).Updates(form).Error
			} else if p := reflect.ValueOf(value); p.Kind() == reflect.Pointer && p.IsNil() && place.Kind() == reflect.Pointer {
				err = db.Model(row).Select(column).Updates(form).Error
			}
			return err
		},
		"batch": func(row *heldRow, column string, value any) error {
			return db.Model([]*heldRow{row}).Updates(map[string]any{column: value}).Error
		},
	}
	written := map[string]int{}
	next := heldStarts(t, db)
	for way, write := range ways {
		for i := range reflect.TypeFor[heldRow]().NumField() {
			field := reflect.TypeFor[heldRow]().Field(i)
			if field.Name == "ID" || field.Name == "Version" {
				continue
			}
			for _, value := range heldValues() {
				if _, is := value.(clause.Expr); is && way != "map" && way != "batch" || way == "form" && !isColumn(value) {
					continue
				}
				row := next()
				if write(row, field.Name, value) != nil { // the server refuses it
					continue
				}
				written[way]++
				if fault := unlikeRow(t, db, row, field); fault != "" {
					t.Errorf("%s, %s %s: %T(%v): %s", way, field.Name, field.Tag.Get("gorm"), value, value, fault)
				}
			}
		}
	}
	t.Log(written)
	for way, least := range map[string]int{"map": 1000, "form": 900, "struct": 100, "batch": 1000} {
		if written[way] < least {
			t.Errorf("%s: only %d writes were not refused", way, written[way])
		}
	}
}

// isColumn reports whether GORM takes a field of such a type for a column.
func isColumn(value any) bool {
	switch value.(type) {
	case nil, map[string]any, map[string]int, struct{ X int }, []int, **int64, **string, document, *document, *money:
		return false
	}
	return true
}

func formOf(column string, value any) any {
	form := reflect.New(reflect.StructOf([]reflect.StructField{{Name: column, Type: reflect.TypeOf(value)}})).Elem()
	form.Field(0).Set(reflect.ValueOf(value))
	return form.Interface()
}

// heldStarts returns what hands out structs, each with a row of its own. Rows are created by the hundred.
func heldStarts(t *testing.T, db *gorm.DB) (next func() *heldRow) {
	var rows []*heldRow
	return func() (row *heldRow) {
		if len(rows) == 0 {
			rows = make([]*heldRow, 100)
			for i := range rows {
				rows[i] = heldStart()
			}
			stand.Must(t, db.Create(rows).Error)
		}
		row, rows = rows[0], rows[1:]
		return row
	}
}

func heldStart() *heldRow {
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	text := "77"
	return &heldRow{
		Big: 77, Small: 77, Natural: 77, Double: 77, Real: 77, Numeric: 77, Exact: "77", Text: "77", Char: "77777", Word: "77", Upper: "U77", Flag: true,
		BigAt: ref(int64(77)), TextAt: ref("77"), FlagAt: ref(true), RealAt: ref(77.0), NullBig: sql.NullInt64{Int64: 77, Valid: true},
		NullText: sql.NullString{String: "77", Valid: true}, NullFlag: sql.NullBool{Bool: true, Valid: true}, At: at, PlainAt: at, AtPointer: ref(at),
		Day: at, Unix: 77, Bytes: []byte("77"), Raw: json.RawMessage("77"), Document: document("77"), Map: map[string]int{"x": 77},
		Money: money{&text}, MoneyAt: &money{&text}, UUID: "77777777-7777-7777-7777-777777777777",
	}
}

// unlikeRow says in what a struct that was written differs from its row, or that it counts as not read.
func unlikeRow(t *testing.T, db *gorm.DB, row *heldRow, field reflect.StructField) string {
	t.Helper()
	var now heldRow
	if db.First(&now, row.ID).Error != nil {
		return "" // nobody reads such a row
	}
	if row.Version != now.Version {
		return "the struct is at version " + strconv.FormatInt(row.Version, 10) + ", the row at " + strconv.FormatInt(now.Version, 10)
	}
	held, stored := reflect.ValueOf(*row).FieldByName(field.Name).Interface(), reflect.ValueOf(now).FieldByName(field.Name).Interface()
	if alike(held, stored) {
		return ""
	}
	text := func() (s string) {
		stand.Must(t, db.Raw("SELECT coalesce(?::text,'') FROM held_rows WHERE id=?", clause.Column{Name: db.NamingStrategy.ColumnName("", field.Name)}, row.ID).Scan(&s).Error)
		return s
	}
	was := text()
	if err := db.Save(row).Error; err != nil {
		return fmt.Sprintf("it holds %#v for %#v, and cannot be saved: %v", held, stored, err)
	}
	if is := text(); is != was {
		return fmt.Sprintf("it holds %#v for %#v, and Save made %q of %q", held, stored, is, was)
	}
	return "" // it is what was sent, which the server rounds or pads again
}

func alike(a, b any) bool {
	switch a := a.(type) {
	case time.Time:
		return a.Equal(b.(time.Time))
	case *time.Time:
		if b := b.(*time.Time); a != nil && b != nil {
			return a.Equal(*b)
		}
	}
	return reflect.DeepEqual(a, b)
}

// A key that GORM reads differently than the server moves the row away from its struct, which then goes with it, or counts
// as not read.
func TestV25_KeyReadDifferently(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		a := stand.Made(t, db, stand.Account{Balance: 1})
		b := stand.Made(t, db, stand.Account{Balance: 2})
		stand.Must(t, db.Model(&a).Updates(map[string]any{"id": json.Number("91"), "balance": 5}).Error)
		stand.Must(t, db.Model([]*stand.Account{&b}).Updates(map[string]any{"id": json.Number("92"), "balance": 5}).Error)
		rivals := []stand.Account{{ID: 1, Balance: 777, Version: 2}, {ID: 2, Balance: 777, Version: 2}}
		stand.Must(t, db.Create(&rivals).Error)
		if err := db.Save(&a).Error; err != nil {
			stand.MustBeUnread(t, err)
		}
		stand.MustBeUnread(t, db.Save(&b).Error)
		for id, balance := range map[int64]int64{1: 777, 2: 777, 91: 5, 92: 5} {
			stand.Equal(t, "stored", stand.Row[stand.Account](t, db, id).Balance, balance)
		}
	})
}
