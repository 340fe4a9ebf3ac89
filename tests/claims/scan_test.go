package claims_test

import (
	"database/sql"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// upper reads itself.
type upper string

func (u *upper) Scan(value any) error {
	s, _ := value.(string)
	*u = upper(strings.ToUpper(s))
	return nil
}

type label string

type geometry struct {
	Width  int16
	Height float32
}

// wide has a field of every shape that GORM reads in its own way.
type wide struct {
	ID       int64
	State    label
	Small    int8
	Count    uint32
	Ratio    float32
	Price    float64 `gorm:"type:numeric(10,2)"`
	Done     bool
	At       time.Time
	Seen     *time.Time
	Name     *string
	Nick     sql.NullString
	Shout    upper
	Raw      []byte
	Document json.RawMessage `gorm:"type:jsonb"`
	Tags     []string        `gorm:"serializer:json"`
	Stamp    int64           `gorm:"serializer:unixtime;type:timestamptz"`
	Size     geometry        `gorm:"embedded;embeddedPrefix:size_"`
	Other    *geometry       `gorm:"embedded;embeddedPrefix:other_"`
	Hidden   string          `gorm:"->:false;<-"`
}

// TestClaimReadsAsFindDoes: whatever a column holds, a claimed row is the row that a query finds.
func TestClaimReadsAsFindDoes(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&wide{}})
	stand.MustDo(t, db.Exec("alter table wides add column unknown text default 'x'"))
	name, seen := "n", time.Now().UTC().Truncate(time.Microsecond)
	stand.Must(t, db.Create([]wide{
		{
			State: "ready", Small: -7, Count: 7, Ratio: 0.5, Price: 12.25, Done: true, At: seen, Seen: &seen, Name: &name,
			Nick: sql.NullString{String: "k", Valid: true}, Shout: "loud", Raw: []byte{0, 1}, Document: json.RawMessage(`{"a": 1}`),
			Tags: []string{"a", "b"}, Stamp: 1_700_000_000, Size: geometry{3, 4}, Other: &geometry{5, 6}, Hidden: "h",
		},
		{State: "ready", Raw: []byte{}, Document: json.RawMessage(`null`)},
	}).Error)
	stand.MustDo(t, db.Exec("insert into wides (state) values ('ready')"))
	found := []wide{}
	stand.Must(t, db.Order("id").Find(&found).Error)
	for i := range found {
		found[i].State = "taken"
	}
	claimed, err := gormlock.Claim[wide](db, 5, map[string]any{"state": "taken"}, func(q *gorm.DB) *gorm.DB {
		return q.Where("state = ?", "ready").Order("id")
	})
	stand.Must(t, err)
	if len(claimed) != 3 {
		t.Fatal(len(claimed), "rows")
	}
	for i := range found {
		if !reflect.DeepEqual(claimed[i], found[i]) {
			t.Errorf("row %d\nclaimed %+v\nfound   %+v", i, claimed[i], found[i])
		}
	}
}

// TestClaimReadsNoWrongNumber: a number that its field cannot hold is an error, not another number.
func TestClaimReadsNoWrongNumber(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&wide{}})
	stand.MustDo(t, db.Exec("alter table wides alter column small type bigint"))
	stand.MustDo(t, db.Exec("insert into wides (state, small) values ('ready', 300)"))
	rows, err := gormlock.Claim[wide](db, 5, map[string]any{"state": "taken"})
	if err == nil || !strings.Contains(err.Error(), "wide.Small: the number in the row is more than int8 holds") {
		t.Errorf("%v, %v", rows, err)
	}
}

// TestClaimByArray: a key that is an array is one key.
func TestClaimByArray(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, nil)
	stand.MustDo(t, db.Exec("create table paths (parts text[] primary key, state text)"))
	stand.MustDo(t, db.Exec("insert into paths values ('{a,b}', 'ready'), ('{a,c}', 'ready'), ('{a}', 'ready')"))
	type path struct {
		Parts pathParts `gorm:"type:text[];primaryKey"`
		State string
	}
	if rows := lastTwo[path](t, db, "parts"); len(rows) != 2 || rows[0].Parts[0] != "{a,c}" || rows[1].Parts[0] != "{a,b}" {
		t.Errorf("%v", rows)
	}
}

// lastTwo claims the last two rows in the order of a column.
func lastTwo[T any](t *testing.T, db *gorm.DB, column string) []T {
	t.Helper()
	rows, err := gormlock.Claim[T](db, 2, map[string]any{"state": "taken"}, func(q *gorm.DB) *gorm.DB { return q.Order(column + " DESC") })
	stand.Must(t, err)
	return rows
}

// pathParts is an array as the driver's text.
type pathParts []string

func (p *pathParts) Scan(value any) error {
	s, _ := value.(string)
	*p = pathParts{s}
	return nil
}

type reading[T any] struct {
	ID    int64
	State string
	Value T
}

func (reading[T]) TableName() string { return "readings" }

// A claim reads a column as a query does where the Go type is another than the column's: the same value, or an error.
func TestClaimReadsAsFindDoes_otherTypes(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, nil)
	for _, column := range [][2]string{
		{"int", "300"}, {"int", "-1"}, {"bigint", "5000000000"}, {"int", "1"}, {"double precision", "1e300"}, {"double precision", "1.5"},
		{"numeric", "12.5"}, {"text", "'7'"}, {"text", "'true'"}, {"bool", "true"}, {"timestamptz", "'2020-01-02 03:04:05Z'"},
		{"date", "'2020-01-02'"}, {"int", "null"}, {"uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"},
	} {
		stand.MustDo(t, db.Exec("drop table if exists readings; create table readings (id bigint primary key, state text, value "+column[0]+"); insert into readings values (1, 'ready', "+column[1]+")"))
		reads[string](t, db, column)
		reads[int64](t, db, column)
		reads[int8](t, db, column)
		reads[uint8](t, db, column)
		reads[uint64](t, db, column)
		reads[float32](t, db, column)
		reads[float64](t, db, column)
		reads[bool](t, db, column)
		reads[time.Time](t, db, column)
		reads[*int64](t, db, column)
		reads[label](t, db, column)
	}
}

func reads[T any](t *testing.T, db *gorm.DB, column [2]string) {
	t.Helper()
	var found reading[T]
	wrong := db.First(&found).Error
	rows, err := gormlock.Claim[reading[T]](db, 1, map[string]any{"state": "ready"})
	if (err == nil) != (wrong == nil) || err == nil && (len(rows) != 1 || !reflect.DeepEqual(rows[0], found)) {
		t.Errorf("%s %s as %T: First %+v, %v; Claim %+v, %v", column[0], column[1], found.Value, found, wrong, rows, err)
	}
}

// An array as text, if its type is known.
func TestClaimByArray_asText(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, nil)
	stand.MustDo(t, db.Exec("create table routes (stops int[] primary key, state text); insert into routes values ('{1,2}', 'ready'), ('{1}', 'ready'), ('{2}', 'ready')"))
	type route struct {
		Stops string `gorm:"type:int[];primaryKey"`
		State string
	}
	if rows := lastTwo[route](t, db, "stops"); len(rows) != 2 || rows[0].Stops != "{2}" || rows[1].Stops != "{1,2}" {
		t.Errorf("%v", rows)
	}
}
