package merges_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"pgregory.net/rapid"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type inner struct {
	Word  string
	Count *int
}

// wide has a column of each type.
type wide struct {
	ID       int64
	Num      string            `gorm:"type:numeric"`
	Price    float64           `gorm:"type:numeric(6,2)"`
	Ratio    float64           `gorm:"type:double precision"`
	Short    float32           `gorm:"type:real"`
	Digits   string            // numeric, which the model does not say
	Doc      *string           `gorm:"type:jsonb"`
	Plain    *string           `gorm:"type:json"`
	Tags     map[string]string `gorm:"type:jsonb;serializer:json"`
	Packed   map[string]int    `gorm:"type:bytea;serializer:gob"`
	Since    int64             `gorm:"type:timestamptz;serializer:unixtime"`
	Fold     string            `gorm:"type:citext"`
	Loose    string            // of a collation that calls different texts equal
	Fixed    string            `gorm:"type:char(5)"`
	Words    string            `gorm:"type:text[]"`
	Folds    string            `gorm:"type:citext[]"`
	Ints     string            `gorm:"type:int[]"`
	Nums     string            `gorm:"type:numeric[]"`
	Span     string            `gorm:"type:interval"`
	Area     string            `gorm:"type:box"`
	Spot     string            `gorm:"type:point"`
	Markup   string            `gorm:"type:xml"`
	Host     string            `gorm:"type:inet"`
	UUID     string            `gorm:"column:uuid;type:uuid"`
	Mood     string            `gorm:"type:mood"`
	Mail     string            `gorm:"type:mail"` // a domain over citext
	At       time.Time
	Clock    time.Time  `gorm:"type:timestamp"`
	Second   time.Time  `gorm:"type:timestamptz(0)"`
	Day      *time.Time `gorm:"type:date"`
	Raw      []byte
	Is       *bool
	Count    int
	Maybe    *int64
	Text     string
	Perhaps  *string
	Null     sql.NullString
	In       inner  `gorm:"embedded;embeddedPrefix:in_"`
	To       *inner `gorm:"embedded;embeddedPrefix:to_"`
	Version  int64  `gorm:"not null;default:1" gormlock:"version"`
	UpdateAt time.Time
}

// choice is a value of a column, and what it is to the server: two of one meaning are the same.
type choice struct {
	meaning string
	set     func(w *wide)
}

func ptr[T any](v T) *T { return &v }

// choices are the values of each column, by its name.
func choices() map[string][]choice {
	noon := time.Date(2026, 7, 1, 12, 0, 15, 0, time.UTC)
	east := time.FixedZone("", 3600)
	all := map[string][]choice{}
	texts := func(column string, set func(w *wide, v string), values ...string) {
		for _, v := range values {
			meaning, value, _ := strings.Cut(v, "=")
			all[column] = append(all[column], choice{meaning, func(w *wide) { set(w, value) }})
		}
	}
	texts("num", func(w *wide, v string) { w.Num = v }, "1=1.0", "1=1.00", "2=2", "n=NaN")
	texts("digits", func(w *wide, v string) { w.Digits = v }, "1=1.0", "2=2", "n=NaN")
	texts("doc", func(w *wide, v string) { w.Doc = &v }, `1={"a":1,"b":2}`, `1={"b":2,"a":1.0}`, "2=[]", "3=null")
	all["doc"] = append(all["doc"], choice{"nil", func(w *wide) { w.Doc = nil }})
	texts("plain", func(w *wide, v string) { w.Plain = &v }, `1={"a":1,"b":2}`, `1={"b":2, "a":1.0}`, "2=[]", "3=null")
	texts("fold", func(w *wide, v string) { w.Fold = v }, "a=a", "A=A", "=")
	texts("loose", func(w *wide, v string) { w.Loose = v }, "a=a", "A=A", "=")
	texts("fixed", func(w *wide, v string) { w.Fixed = v }, "a=ab", "a=ab  ", "b=b")
	texts("words", func(w *wide, v string) { w.Words = v }, "1={a,b}", `1={"a", "b"}`, "2={A,b}", "3={}")
	texts("folds", func(w *wide, v string) { w.Folds = v }, "1={a,b}", `1={"a", "b"}`, "2={A,b}", "3={}")
	texts("ints", func(w *wide, v string) { w.Ints = v }, "1={1,2}", "1={ 1, 2 }", "2={}")
	texts("nums", func(w *wide, v string) { w.Nums = v }, "1={1.0}", "1={1.00}", "2={2}")
	texts("span", func(w *wide, v string) { w.Span = v }, "1=1 day", "1=P1D", "2=24:00:00", "3=1 mon", "4=30 days")
	texts("area", func(w *wide, v string) { w.Area = v }, "1=(1,1),(0,0)", "1=(0,0),(1,1)", "2=(3,3),(2,2)")
	texts("spot", func(w *wide, v string) { w.Spot = v }, "1=(1,1)", "1=1,1", "2=(2,2)")
	texts("markup", func(w *wide, v string) { w.Markup = v }, "1=<a/>", "2=<b/>")
	texts("host", func(w *wide, v string) { w.Host = v }, "1=::1", "1=0:0::1", "2=10.0.0.1")
	texts("uuid", func(w *wide, v string) { w.UUID = v }, "1=a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "1=A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "2=b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
	texts("mood", func(w *wide, v string) { w.Mood = v }, "1=sad", "2=glad")
	texts("mail", func(w *wide, v string) { w.Mail = v }, "1=a@b", "2=A@b")
	texts("text", func(w *wide, v string) { w.Text = v }, "=", "a=a", "A=A", "a =a ")
	texts("perhaps", func(w *wide, v string) { w.Perhaps = &v }, "=", "a=a")
	all["perhaps"] = append(all["perhaps"], choice{"nil", func(w *wide) { w.Perhaps = nil }})
	texts("null", func(w *wide, v string) { w.Null = sql.NullString{String: v, Valid: v != "nil"} }, "=", "a=a", "nil=nil")
	texts("in_word", func(w *wide, v string) { w.In.Word = v }, "=", "a=a")
	texts("to_word", func(w *wide, v string) { w.To = &inner{Word: v, Count: w.To.Count} }, "=", "a=a")
	for i, v := range []int{0, 1, 2} {
		m := fmt.Sprint(v)
		all["price"] = append(all["price"], choice{m, func(w *wide) { w.Price = float64(v) }}, choice{m, func(w *wide) { w.Price = float64(v) + 0.001 }})
		all["ratio"] = append(all["ratio"], choice{m, func(w *wide) { w.Ratio = []float64{math.NaN(), 0.1, math.Inf(1)}[v] }})
		all["short"] = append(all["short"], choice{m, func(w *wide) { w.Short = []float32{float32(math.NaN()), 0.1, 0}[v] }})
		all["tags"] = append(all["tags"], choice{m, func(w *wide) { w.Tags = []map[string]string{nil, {}, {"a": "b", "c": "d"}}[v] }})
		all["packed"] = append(all["packed"], choice{m, func(w *wide) { w.Packed = map[string]int{"a": v, "b": 1, "c": 2, "d": 3} }})
		all["since"] = append(all["since"], choice{m, func(w *wide) { w.Since = 1e9 + int64(v) }})
		all["at"] = append(all["at"], choice{m, func(w *wide) { w.At = noon.AddDate(0, 0, v) }}, choice{m, func(w *wide) { w.At = noon.AddDate(0, 0, v).In(east) }})
		all["clock"] = append(all["clock"], choice{m, func(w *wide) { w.Clock = noon.Add(time.Duration(v) * time.Hour) }}, choice{fmt.Sprint(v + 1), func(w *wide) { w.Clock = noon.Add(time.Duration(v) * time.Hour).In(east) }})
		all["second"] = append(all["second"], choice{m, func(w *wide) { w.Second = noon.Add(time.Duration(v) * time.Second) }}, choice{m, func(w *wide) { w.Second = noon.Add(time.Duration(v)*time.Second + 300*time.Millisecond) }},
			choice{fmt.Sprint(v + 1), func(w *wide) { w.Second = noon.Add(time.Duration(v)*time.Second + 700*time.Millisecond) }})
		all["day"] = append(all["day"], choice{m, func(w *wide) { w.Day = ptr(time.Date(2026, 7, 1+v, 0, 0, 0, 0, time.UTC)) }})
		all["raw"] = append(all["raw"], choice{m, func(w *wide) { w.Raw = [][]byte{{}, {0}, []byte("raw")}[v] }})
		all["is"] = append(all["is"], choice{m, func(w *wide) { w.Is = []*bool{nil, ptr(true), ptr(false)}[v] }})
		all["count"] = append(all["count"], choice{m, func(w *wide) { w.Count = v }})
		all["maybe"] = append(all["maybe"], choice{m, func(w *wide) { w.Maybe = []*int64{nil, ptr(int64(0)), ptr(int64(1))}[v] }})
		all["in_count"] = append(all["in_count"], choice{m, func(w *wide) { w.In.Count = []*int{nil, ptr(0), ptr(1)}[i] }})
	}
	return all
}

// openWide makes the table.
func openWide(t *testing.T) *gorm.DB {
	t.Helper()
	db := stand.Open(t)
	for _, query := range []string{
		"CREATE EXTENSION IF NOT EXISTS citext", "CREATE TYPE mood AS ENUM ('sad', 'glad')", "CREATE DOMAIN mail AS citext",
		"CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
	} {
		if err := db.Exec(query).Error; err != nil {
			t.Skip(query, err)
		}
	}
	stand.Must(t, db.AutoMigrate(&wide{}))
	stand.Must(t, db.Exec("ALTER TABLE wides ALTER digits TYPE numeric USING 0, ALTER loose TYPE text COLLATE loose").Error)
	return db
}

// shown is how the server shows each column.
func shown(r *rapid.T, db *gorm.DB, id int64, columns []string) map[string]string {
	row := map[string]any{}
	texts := make([]string, len(columns))
	for i, c := range columns {
		texts[i] = fmt.Sprintf("coalesce(%q::text, 'NULL') AS %q", c, c)
	}
	mustRapid(r, db.Session(&gorm.Session{NewDB: true}).Table("wides").Select(strings.Join(texts, ", ")).Where("id = ?", id).Take(&row).Error)
	all := map[string]string{}
	for _, c := range columns {
		all[c] = fmt.Sprint(row[c])
	}
	return all
}

// copied is a copy that shares nothing.
func copied(w *wide) wide { return memory.Own(reflect.ValueOf(*w)).Interface().(wide) }

// alike is DeepEqual, to which NaN is NaN.
func alike(a, b wide) bool {
	for _, w := range []*wide{&a, &b} {
		if math.IsNaN(w.Ratio) {
			w.Ratio = -1
		}
		if w.Short != w.Short {
			w.Short = -1
		}
	}
	return reflect.DeepEqual(a, b)
}

// unlike names the fields that differ.
func unlike(a, b wide) string {
	var all strings.Builder
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if p, q := x.Field(i).Interface(), y.Field(i).Interface(); !reflect.DeepEqual(p, q) {
			fmt.Fprintf(&all, "%s: %#v, %#v; ", x.Type().Field(i).Name, p, q)
		}
	}
	return all.String()
}

// Random changes of both sides of columns of all types, compared with the definition. On an error, and after a rollback,
// nothing is stored, and mine is what it was.
func TestSaveMerged_allTypes(t *testing.T) {
	t.Parallel()
	db := openWide(t)
	all := choices()
	var columns []string
	for column := range all {
		columns = append(columns, column)
	}
	slices.Sort(columns)
	dbs := []*gorm.DB{db, db.Session(&gorm.Session{PrepareStmt: true}), db.Session(&gorm.Session{SkipDefaultTransaction: true})}
	rapid.Check(t, func(r *rapid.T) {
		db := rapid.SampledFrom(dbs).Draw(r, "db")
		meaning := map[string][3]string{}
		change := func(who int, some bool, into *wide) {
			for _, c := range columns {
				now := meaning[c]
				if !some || rapid.IntRange(0, 7).Draw(r, c) == 0 {
					drawn := rapid.SampledFrom(all[c]).Draw(r, c)
					now[who] = drawn.meaning
					drawn.set(into)
				} else {
					now[who] = now[0]
				}
				meaning[c] = now
			}
		}
		created := wide{To: &inner{}}
		change(0, false, &created)
		mustRapid(r, db.Create(&created).Error)
		var base, theirs wide
		mustRapid(r, db.First(&base, created.ID).Error)
		mustRapid(r, db.First(&theirs, created.ID).Error)
		if rapid.Bool().Draw(r, "base as it was created") {
			base = created
		}
		mine := copied(&base)
		change(1, true, &theirs)
		change(2, true, &mine)
		if rapid.Bool().Draw(r, "they save") {
			mustRapid(r, db.Save(&theirs).Error)
		} else {
			for c, m := range meaning {
				m[1] = m[0]
				meaning[c] = m
			}
		}
		alone := copied(&mine) // what the server makes of mine
		alone.ID = 0
		mustRapid(r, db.Create(&alone).Error)
		was, wasBase, before, own := copied(&mine), copied(&base), shown(r, db, base.ID, columns), shown(r, db, alone.ID, columns)

		var conflicts []string
		want := map[string]string{}
		for c, m := range meaning {
			switch {
			case m[2] == m[0], m[2] == m[1]:
				want[c] = before[c]
			case m[1] == m[0]:
				want[c] = own[c]
			default:
				conflicts = append(conflicts, c)
			}
		}
		slices.Sort(conflicts)

		back := rapid.SampledFrom([]string{"", "", "", "rollback", "savepoint"}).Draw(r, "back")
		err := saveMergedAndBack(db, back, &mine, &base)
		var got []string
		var conflict *gormlock.ConflictError
		if errors.As(err, &conflict) {
			for _, c := range conflict.Columns {
				got = append(got, c.Column)
			}
			slices.Sort(got)
		} else {
			mustRapid(r, err)
		}
		if !slices.Equal(got, conflicts) {
			r.Fatalf("the conflicts are %v, want %v", got, conflicts)
		}
		if !alike(base, wasBase) {
			r.Fatalf("base was changed: %+v, was %+v", base, wasBase)
		}
		after := shown(r, db, base.ID, columns)
		if err != nil || back != "" {
			if !reflect.DeepEqual(after, before) || !alike(mine, was) {
				r.Fatalf("after %v and %q the row is %v, was %v; mine %s", err, back, after, before, unlike(mine, was))
			}
			return
		}
		var row wide
		mustRapid(r, db.First(&row, base.ID).Error)
		for _, c := range columns {
			if c == "packed" { // gob writes a map otherwise each time
				after[c], want[c] = fmt.Sprint(row.Packed["a"]), mergedOf(meaning[c])
			}
			if after[c] != want[c] {
				r.Errorf("%s is %s, want %s of %v", c, after[c], want[c], meaning[c])
			}
		}
		if !alike(mine, row) {
			r.Fatalf("mine is not the row: %s", unlike(mine, row))
		}
	})
}

// mergedOf is the definition, of what base, theirs and mine mean.
func mergedOf(m [3]string) string {
	if m[2] == m[0] {
		return m[1]
	}
	return m[2]
}

// saveMergedAndBack saves mine, and rolls back what it is told to.
func saveMergedAndBack(db *gorm.DB, back string, mine, base *wide) error {
	switch back {
	case "rollback":
		tx := db.Begin()
		err := gormlock.SaveMerged(tx, mine, base)
		if back := tx.Rollback().Error; err == nil {
			err = back
		}
		return err
	case "savepoint":
		var err error
		if outer := db.Transaction(func(tx *gorm.DB) error {
			_ = tx.Transaction(func(tx *gorm.DB) error {
				err = gormlock.SaveMerged(tx, mine, base)
				return errHook
			})
			return nil
		}); err == nil {
			err = outer
		}
		return err
	}
	return gormlock.SaveMerged(db, mine, base)
}
