package statement_test

import (
	"database/sql"
	"reflect"
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/statement"
)

// Whatever the value, the text and what is sent are those of GORM.
func TestExpression_isGORMs(t *testing.T) {
	t.Parallel()
	type number int
	db := &gorm.DB{Config: &gorm.Config{Dialector: postgres.New(postgres.Config{})}}
	at, text := time.Now(), "x"
	for _, value := range []any{
		1, int64(2), int32(3), uint(4), uint64(5), uint32(6), "seven", true, 9.5,
		int8(1), float32(2), number(3), nil, &text, at, []byte("4"), []int{5, 6}, []any{}, sql.Named("n", 7), sql.NullInt64{Int64: 8},
		clause.Column{Name: "c"}, clause.Expr{SQL: "now() - ?", Vars: []any{9}},
	} {
		ours, theirs := &gorm.Statement{DB: db}, &gorm.Statement{DB: db}
		statement.SQL{Statement: ours}.Expression(value)
		theirs.AddVar(theirs, value)
		if ours.SQL.String() != theirs.SQL.String() || !reflect.DeepEqual(ours.Vars, theirs.Vars) {
			t.Errorf("%T: %q with %v, GORM writes %q with %v", value, ours.SQL.String(), ours.Vars, theirs.SQL.String(), theirs.Vars)
		}
	}
}
