package statement_test

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// cents is sent as text.
type cents int64

func (c cents) Value() (driver.Value, error) { return fmt.Sprint(int64(c), " cents"), nil }

type named string

type held struct {
	Int    int64
	Short  int32
	Count  uint8
	Part   float64
	Text   string
	Named  named
	On     bool
	Cents  cents
	May    *int64
	Null   sql.NullString
	Listed int64 `gorm:"serializer:json"`
}

func TestHolds(t *testing.T) {
	t.Parallel()
	s, err := schema.Parse(&held{}, &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		t.Fatal(err)
	}
	seven := int64(7)
	row := held{
		Int: 7, Short: 7, Count: 7, Part: 7, Text: "7", Named: "7", On: true, Cents: 7, May: &seven,
		Null: sql.NullString{String: "7", Valid: true}, Listed: 7,
	}
	for _, test := range []struct {
		field string
		value any
		holds bool
	}{
		{"Int", 7, true}, {"Int", int64(7), true}, {"Int", uint8(7), true}, {"Int", 7.0, true}, {"Int", &seven, true},
		{"Int", 8, false}, {"Int", int64(8), false}, {"Int", nil, false}, {"Int", "7", false}, {"Int", true, false}, {"Int", clause.Expr{SQL: "7"}, false},
		{"Short", 7, true}, {"Short", int64(7), true}, {"Short", int64(1)<<32 + 7, false},
		{"Count", 7, true}, {"Count", 263, false}, {"Count", -7, false},
		{"Part", 7, true}, {"Part", 7.5, false},
		{"Text", "7", true}, {"Text", named("7"), true}, {"Text", "8", false}, {"Text", 7, false},
		{"Named", "7", true}, {"Named", named("7"), true}, {"Named", "8", false},
		{"On", true, true}, {"On", false, false}, {"On", 1, false},
		{"Cents", 7, false}, {"Cents", int64(7), false}, {"Cents", "7 cents", true}, {"Cents", cents(7), true}, {"Cents", cents(8), false},
		{"May", 7, true}, {"May", int64(7), true}, {"May", 8, false}, {"May", nil, false},
		{"Null", "7", true}, {"Null", "8", false}, {"Null", nil, false},
		{"Listed", 7, false}, {"Listed", int64(7), false},
	} {
		if is := statement.Holds(t.Context(), s.LookUpField(test.field), reflect.ValueOf(row), test.value); is != test.holds {
			t.Errorf("%s holds %T %v: %v", test.field, test.value, test.value, is)
		}
	}
}
