package merges_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type address struct {
	Street string
	Number *int
}

type Origin struct {
	Country string
	Since   *time.Time
}

// sheet has columns of many kinds.
type sheet struct {
	ID       int64
	Price    string `gorm:"type:numeric"`
	Ratio    float64
	JSON     string            `gorm:"type:json;default:null"`
	JSONB    *string           `gorm:"column:jsonb;type:jsonb"`
	Tags     map[string]string `gorm:"type:jsonb;serializer:json"`
	Words    []string          `gorm:"serializer:json"`
	Ints     string            `gorm:"type:int[];default:null"`
	Raw      []byte
	At       time.Time
	Day      *time.Time `gorm:"type:date"`
	Minute   time.Time  `gorm:"type:timestamptz(0)"`
	Name     string
	Home     address  `gorm:"embedded;embeddedPrefix:home_"`
	Work     *address `gorm:"embedded;embeddedPrefix:work_"`
	*Origin  `gorm:"embedded"`
	Null     *int64
	Document json.RawMessage `gorm:"type:jsonb"`
	Version  int64           `gorm:"not null;default:1" gormlock:"version"`
}

func newSheet() sheet {
	n, at := 5, time.Date(2026, 7, 1, 12, 30, 15, 123456789, time.UTC)
	return sheet{
		Price: "1.50", Ratio: 0.1, JSON: `{"a":1, "b":2}`, JSONB: text(`{"a": 1, "b": 2}`), Tags: map[string]string{"k": "v"}, Words: []string{"x"},
		Ints: "{1,2}", Raw: []byte("raw"), At: at, Minute: at, Name: "Name", Home: address{"s", &n}, Work: &address{"w", nil},
		Origin: &Origin{"fr", &at}, Document: json.RawMessage(`{"d": 1}`),
	}
}

// Of each column: what only one side changed is kept, another spelling of one value is no change of the other side, and two
// changes are a conflict.
func TestSaveMerged_eachColumn(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := stand.Open(t, opts...)
		stand.Must(t, db.AutoMigrate(&sheet{}))
		three, later := 3, time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC)
		for name, c := range map[string]struct {
			mine, theirs func(*sheet)
			same         func(*sheet) // the value of mine, written otherwise
		}{
			"price":       {mine: func(s *sheet) { s.Price = "2.0" }, theirs: func(s *sheet) { s.Price = "3" }, same: func(s *sheet) { s.Price = "2.00" }},
			"ratio":       {mine: func(s *sheet) { s.Ratio = 2 }, theirs: func(s *sheet) { s.Ratio = 3 }},
			"json":        {mine: func(s *sheet) { s.JSON = `{"b":1,"a":[1]}` }, theirs: func(s *sheet) { s.JSON = `{}` }, same: func(s *sheet) { s.JSON = `{"a":[ 1 ],  "b":1}` }},
			"jsonb":       {mine: func(s *sheet) { s.JSONB = text(`{"b":1,"a":1}`) }, theirs: func(s *sheet) { s.JSONB = nil }, same: func(s *sheet) { s.JSONB = text(`{"a":1.0,"b":1}`) }},
			"tags":        {mine: func(s *sheet) { s.Tags = map[string]string{"m": "1"} }, theirs: func(s *sheet) { s.Tags = nil }},
			"words":       {mine: func(s *sheet) { s.Words = []string{"m"} }, theirs: func(s *sheet) { s.Words = []string{"x", "y"} }},
			"ints":        {mine: func(s *sheet) { s.Ints = "{3}" }, theirs: func(s *sheet) { s.Ints = "{4}" }, same: func(s *sheet) { s.Ints = "{ 3 }" }},
			"raw":         {mine: func(s *sheet) { s.Raw = []byte("m") }, theirs: func(s *sheet) { s.Raw = nil }},
			"at":          {mine: func(s *sheet) { s.At = later }, theirs: func(s *sheet) { s.At = later.Add(time.Hour) }, same: func(s *sheet) { s.At = later.In(time.FixedZone("", 3600)) }},
			"day":         {mine: func(s *sheet) { s.Day = &later }, theirs: func(s *sheet) { d := later.AddDate(0, 0, 1); s.Day = &d }},
			"minute":      {mine: func(s *sheet) { s.Minute = later }, theirs: func(s *sheet) { s.Minute = later.Add(time.Hour) }, same: func(s *sheet) { s.Minute = later.Add(time.Millisecond) }},
			"name":        {mine: func(s *sheet) { s.Name = "mine" }, theirs: func(s *sheet) { s.Name = "MINE" }},
			"home_number": {mine: func(s *sheet) { s.Home.Number = nil }, theirs: func(s *sheet) { s.Home.Number = &three }},
			"work_street": {mine: func(s *sheet) { s.Work = &address{Street: "mine"} }, theirs: func(s *sheet) { s.Work = &address{Street: "theirs"} }},
			"country":     {mine: func(s *sheet) { s.Origin = &Origin{"mine", s.Since} }, theirs: func(s *sheet) { s.Origin = &Origin{"theirs", s.Since} }},
			"null":        {mine: func(s *sheet) { v := int64(1); s.Null = &v }, theirs: func(s *sheet) { v := int64(0); s.Null = &v }},
			"document":    {mine: func(s *sheet) { s.Document = json.RawMessage(`{"m":1}`) }, theirs: func(s *sheet) { s.Document = json.RawMessage(`{"t":1}`) }, same: func(s *sheet) { s.Document = json.RawMessage(`{"m" : 1}`) }},
		} {
			open := func() (base, mine sheet, theirs func(change func(*sheet))) {
				s := newSheet()
				stand.Must(t, db.Create(&s).Error)
				stand.Must(t, db.First(&base, s.ID).Error)
				stand.Must(t, db.First(&mine, s.ID).Error)
				return base, mine, func(change func(*sheet)) {
					var other sheet
					stand.Must(t, db.First(&other, s.ID).Error)
					change(&other)
					stand.Must(t, db.Save(&other).Error)
				}
			}
			mustBe := func(what string, mine sheet) {
				t.Helper()
				if row := stand.Row[sheet](t, db, mine.ID); !reflect.DeepEqual(mine, row) {
					t.Errorf("%s, %s: mine is %+v, the row %+v", name, what, mine, row)
				}
			}
			other := func(s *sheet) { s.Ratio = 77 }
			if name == "ratio" {
				other = func(s *sheet) { s.Price = "77" }
			}

			base, mine, theirs := open()
			c.mine(&mine)
			theirs(other)
			want := mine
			other(&want)
			stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
			mustBe("mine alone", mine)
			again := stand.Row[sheet](t, db, mine.ID)
			stand.Equal(t, name+" version", again.Version, 3)

			base, mine, theirs = open()
			other(&mine)
			theirs(c.mine)
			stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
			mustBe("theirs alone", mine)

			base, mine, theirs = open()
			c.mine(&mine)
			before := mine
			theirs(c.theirs)
			if conflicts := mustConflict(t, gormlock.SaveMerged(db, &mine, &base)); len(conflicts) != 1 || conflicts[name].Column != name || !reflect.DeepEqual(mine, before) {
				t.Errorf("%s: %+v", name, conflicts)
			}

			base, mine, theirs = open()
			if c.same == nil {
				c.same = c.mine
			}
			c.same(&mine)
			other(&mine)
			theirs(c.mine)
			if err := gormlock.SaveMerged(db, &mine, &base); err != nil {
				t.Errorf("%s, both the same: %v", name, err)
			}
			mustBe("both the same", mine)
		}
	})
}

// What mine writes otherwise, and others changed, is theirs: it is no change of mine.
func TestSaveMerged_spelledOtherwise(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.AutoMigrate(&sheet{}))
	s := newSheet()
	stand.Must(t, db.Create(&s).Error)
	var base, mine, theirs sheet
	for _, into := range []*sheet{&base, &mine, &theirs} {
		stand.Must(t, db.First(into, s.ID).Error)
	}
	mine.Price, mine.JSON, mine.Ratio = "1.5", `{"b":2,"a":1}`, 9
	theirs.Price, theirs.JSON = "7.00", `[]`
	stand.Must(t, db.Save(&theirs).Error)
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	stand.Equal(t, "price", mine.Price, "7.00")
	stand.Equal(t, "json", mine.JSON, "[]")
	stand.Equal(t, "ratio", mine.Ratio, 9)
}

// guarded is a model that may not write all its columns.
type guarded struct {
	ID      int64
	Name    string
	Total   int64   `gorm:"->;type:bigint GENERATED ALWAYS AS (length(name)) STORED"`
	Made    string  `gorm:"<-:create"`
	Secret  string  `gorm:"->:false;<-"`
	Exact   float64 `gorm:"type:numeric"`
	Version int64   `gorm:"not null;default:1" gormlock:"version"`
}

// Only what is mine is written: columns that the model does not read, or reads inexactly, stay as they are.
func TestSaveMerged_writesWhatIsMine(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&guarded{}})
	stand.Must(t, db.Exec("INSERT INTO guardeds (name, made, secret, exact) VALUES ('a', 'm', 's', 0.12345678901234567890123)").Error)
	var base, mine guarded
	stand.Must(t, db.First(&base).Error)
	mine = base
	mine.Name = "longer"
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	stand.Equal(t, "the generated column", mine.Total, 6)
	var row struct{ Secret, Exact string }
	stand.Must(t, db.Table("guardeds").Select("secret, exact::text").Take(&row).Error)
	stand.Equal(t, "secret", row.Secret, "s")
	stand.Equal(t, "exact", row.Exact, "0.12345678901234567890123")

	for name, change := range map[string]func(*guarded){
		"Total": func(g *guarded) { g.Total++ }, "Made": func(g *guarded) { g.Made = "x" }, "Secret": func(g *guarded) { g.Secret = "x" },
	} {
		base = mine
		other := base
		change(&other)
		was := other
		if err := gormlock.SaveMerged(db, &other, &base); err == nil || errors.Is(err, gormlock.ErrStale) || other != was {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pair has a key of two columns, and part of it may be zero.
type pair struct {
	A, B  int64 `gorm:"primaryKey;autoIncrement:false"`
	Value string
	Other string
}

type versionedPair struct {
	A, B    int64 `gorm:"primaryKey;autoIncrement:false"`
	Value   string
	Other   string
	Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

func (versionedPair) TableName() string { return "pairs" }

func TestSaveMerged_compositeKeysAndXmin(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&pair{}})
	stand.Must(t, db.Create(&[]pair{{A: 1, B: 0, Value: "v"}, {A: 1, B: 2, Value: "v"}}).Error)
	for _, b := range []int64{0, 2} {
		base := pair{A: 1, B: b, Value: "v"}
		mine := base
		mine.Other = "mine"
		stand.Must(t, db.Exec("UPDATE pairs SET value = 'theirs' WHERE a = 1 AND b = ?", b).Error)
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "mine", mine, pair{1, b, "theirs", "mine"})
	}
	for _, b := range []int64{0, 2} {
		var base versionedPair
		stand.Must(t, db.Where("a = 1 AND b = ?", b).Take(&base).Error)
		mine := base
		mine.Value = "mine"
		stand.Must(t, db.Exec("UPDATE pairs SET other = 'again' WHERE a = 1 AND b = ?", b).Error)
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		var row versionedPair
		stand.Must(t, db.Where("a = 1 AND b = ?", b).Take(&row).Error)
		stand.Equal(t, "mine", mine, row)
		mine.Value = "next"
		stand.Must(t, db.Save(&mine).Error)
	}
	var all []pair
	stand.Must(t, db.Find(&all).Error)
	stand.Equal(t, "rows", len(all), 2)
}

// The version of each kind is that of the row afterwards.
func TestSaveMerged_kindsOfVersions(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.RailsTask{}, &stand.TimedTask{}})
	rails := stand.RailsTask{State: "a"}
	stand.Must(t, db.Create(&rails).Error)
	base, mine := rails, rails
	mine.State = "mine"
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	stand.Equal(t, "rails", stand.Row[stand.RailsTask](t, db, mine.ID), mine)

	timed := stand.TimedTask{State: "a"}
	stand.Must(t, db.Create(&timed).Error)
	tBase, tMine := timed, timed
	tMine.State = "mine"
	stand.Must(t, gormlock.SaveMerged(db, &tMine, &tBase))
	tMine.State = "next"
	stand.Must(t, db.Save(&tMine).Error)
	if !tMine.Version.After(tBase.Version) {
		t.Error(tMine, tBase)
	}
}
