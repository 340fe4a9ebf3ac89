package etag_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
)

type doc struct {
	ID      int64
	Title   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// docOf has a version of a type.
type docOf[V any] struct {
	ID      int64
	Version V `gormlock:"version"`
}

type secondDoc struct {
	ID      int64
	Version time.Time `gorm:"type:timestamptz(0)" gormlock:"version"`
}

type xminDoc struct {
	ID      int64
	Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

type railsDoc struct {
	ID          int64
	LockVersion *int64 `gormlock:"version,rails"`
}

// hibernateDoc has a version of a type, counted as Hibernate does.
type hibernateDoc[V any] struct {
	ID      int64
	Version V `gormlock:"version,hibernate"`
}

type Revised struct {
	Version int64 `gormlock:"version"`
}

type embeddedDoc struct {
	gorm.Model
	Revised
}

type pointedDoc struct {
	ID int64
	*Revised
}

type prefixedDoc struct {
	ID   int64
	Meta Revised `gorm:"embedded;embeddedPrefix:meta_"`
}

type pairDoc struct {
	Book, Page int64 `gorm:"primaryKey;autoIncrement:false"`
	Version    int64 `gormlock:"version,initial=0"`
}

func pointer[T any](v T) *T { return &v }

func TestOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 6, 20, 49, 123456789, time.FixedZone("", 3600))
	second := &doc{ID: 1, Version: 8}
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"a struct":               {doc{ID: 1, Version: 7}, `"7"`},
		"a pointer":              {&doc{ID: 1, Version: 7}, `"7"`},
		"a pointer to a pointer": {&second, `"8"`},
		"without its key":        {doc{Version: 7}, `"7"`},
		"a pointer as version":   {docOf[*int32]{1, pointer(int32(7))}, `"7"`},
		"sql.Null":               {docOf[sql.NullInt64]{1, sql.NullInt64{Int64: 7, Valid: true}}, `"7"`},
		"unsigned":               {docOf[uint8]{1, 200}, `"200"`},
		"a time":                 {docOf[time.Time]{1, at}, `"2026-11-23T05:20:49.123456Z"`},
		"a time in another zone": {docOf[time.Time]{1, at.UTC()}, `"2026-11-23T05:20:49.123456Z"`},
		"a time of seconds":      {secondDoc{1, at}, `"2026-11-23T05:20:49Z"`},
		"xmin":                   {xminDoc{1, 4_000_000_000}, `"4000000000"`},
		"Rails":                  {railsDoc{1, pointer(int64(0))}, `"0"`},
		"Rails, NULL":            {railsDoc{ID: 1}, `"null"`},
		"Hibernate":              {hibernateDoc[int64]{ID: 1}, `"0"`},
		"embedded":               {embeddedDoc{gorm.Model{ID: 1}, Revised{7}}, `"7"`},
		"embedded by pointer":    {pointedDoc{1, &Revised{7}}, `"7"`},
		"embedded by tag":        {prefixedDoc{1, Revised{7}}, `"7"`},
		"a part of the key is 0": {pairDoc{Page: 1}, `"0"`},
	} {
		if tag, err := etag.Of(c.value); err != nil || tag != c.want {
			t.Errorf("%s: got %s, %v, want %s", name, tag, err, c.want)
		}
	}
}

func TestOf_whatHasNoVersion(t *testing.T) {
	t.Parallel()
	type plain struct{ ID int64 }
	type keyless struct {
		Title   string
		Version int64 `gormlock:"version"`
	}
	type twice struct {
		ID   int64
		A, B int64 `gormlock:"version"`
	}
	type mistaken struct {
		ID      int64
		Version string `gormlock:"version"`
	}
	type misplaced struct {
		ID      int64
		Version int64 `gorm:"gormlock:version"`
	}
	for name, c := range map[string]struct {
		value  any
		unread bool
		says   string
	}{
		"nil":                      {nil, false, "<nil> is nil"},
		"a nil pointer":            {(*doc)(nil), false, "*etag_test.doc is nil"},
		"a number":                 {7, false, "int is not a struct"},
		"a map":                    {map[string]any{"version": 7}, false, "is not a struct"},
		"no version":               {plain{1}, false, "plain has no version field: tag one"},
		"no version, none":         {[]plain{}, false, "plain has no version field"},
		"numbers":                  {[]int{7}, false, "int is not a struct"},
		"whatever":                 {[]any{doc{ID: 1, Version: 7}}, false, "interface {} is not a struct"},
		"no key":                   {keyless{Version: 7}, false, "needs a primary key"},
		"two versions":             {twice{1, 2, 3}, false, "a second version field beside A"},
		"a wrong type":             {mistaken{1, "7"}, false, "not string"},
		"a tag that nobody reads":  {misplaced{1, 7}, false, "inside the tag"},
		"not read":                 {doc{ID: 1}, true, "the doc was not read from its row"},
		"not read, empty":          {&doc{}, true, "was not read"},
		"not read, NULL":           {docOf[*int32]{ID: 1}, true, "was not read"},
		"not read, a time":         {docOf[time.Time]{ID: 1}, true, "was not read"},
		"not read, xmin":           {xminDoc{ID: 1}, true, "was not read"},
		"not read, embedded":       {pointedDoc{ID: 1}, true, "was not read"},
		"not read, Hibernate":      {hibernateDoc[int64]{}, true, "its key is zero"},
		"not read, Rails":          {railsDoc{}, true, "its key is zero"},
		"taken back":               {hibernateDoc[int64]{1, -1}, true, "taken back"},
		"taken back, unsigned":     {hibernateDoc[uint16]{1, 65535}, true, "taken back"},
		"an element":               {[]doc{{ID: 1, Version: 1}, {ID: 2}}, true, ": element 1"},
		"an element without a key": {[]doc{{Version: 1}}, true, ": element 0"},
		"a nil element":            {[]*doc{{ID: 1, Version: 1}, nil}, false, "element 1 is nil"},
	} {
		tag, err := etag.Of(c.value)
		if tag != "" || !errors.Is(err, etag.ErrNoVersion) || errors.Is(err, gormlock.ErrVersionMissing) != c.unread || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %s, %v", name, tag, err)
		}
		if strings.Count(err.Error(), "gormlock: ") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOf_slices(t *testing.T) {
	t.Parallel()
	one, two := doc{ID: 1, Version: 7}, doc{ID: 2, Version: 3}
	both := tagOf(t, []doc{one, two})
	for name, same := range map[string]any{
		"a pointer":       &[]doc{one, two},
		"pointers":        []*doc{&one, &two},
		"an array":        [2]doc{one, two},
		"with other text": []doc{{ID: 1, Version: 7, Title: "x"}, two},
	} {
		if got := tagOf(t, same); got != both {
			t.Errorf("%s: %s, and %s before", name, got, both)
		}
	}
	seen := map[string]string{both: "both"}
	for name, other := range map[string]any{
		"the other order":      []doc{two, one},
		"one":                  []doc{one},
		"none":                 []doc{},
		"one twice":            []doc{one, one},
		"another version":      []doc{{ID: 1, Version: 8}, two},
		"another key":          []doc{{ID: 3, Version: 7}, two},
		"digits that moved":    []doc{{ID: 17, Version: 2}, {ID: 3, Version: 1}},
		"digits that moved on": []doc{{ID: 1, Version: 72}, {ID: 3, Version: 1}},
	} {
		tag := tagOf(t, other)
		if twin, is := seen[tag]; is {
			t.Errorf("%s has the tag of %s: %s", name, twin, tag)
		}
		seen[tag] = name
	}
	if none := tagOf(t, []doc(nil)); none != tagOf(t, []doc{}) {
		t.Errorf("nil is %s", none)
	}
	if tag := tagOf(t, []doc{one}); tag == tagOf(t, one) {
		t.Errorf("a slice of one row has the tag of the row: %s", tag)
	}
	if a, b := tagOf(t, []pairDoc{{1, 23, 4}}), tagOf(t, []pairDoc{{12, 3, 4}}); a == b {
		t.Errorf("two keys have one tag: %s", a)
	}
	// The tag never changes: a client keeps it longer than a process lives.
	if both != `"rows-g8Zx9qeyy_Z1_FBpOEBGNQ"` {
		t.Errorf("the tag of two rows has become %s", both)
	}
}
