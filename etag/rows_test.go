package etag_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/internal/pgtest"
)

type Page struct {
	ID    int64
	Title string
	Body  string
}

type (
	integerPage struct {
		Page
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	pointerPage struct {
		Page
		Version *int16 `gormlock:"version"`
	}
	timePage struct {
		Page
		Version time.Time `gorm:"type:timestamptz(3)" gormlock:"version"`
	}
	xminPage struct {
		Page
		Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
	}
	railsPage struct {
		Page
		LockVersion int64 `gormlock:"version,rails"`
	}
	railsNullPage struct {
		Page
		LockVersion *int64 `gormlock:"version,rails"`
	}
	hibernatePage struct {
		Page
		Version uint64 `gormlock:"version,hibernate"`
	}
)

// The tag of a row comes back and names the row as it was read, whatever the type of its version.
func TestIfMatch_eachKindOfVersion(t *testing.T) {
	t.Parallel()
	t.Run("integer", eachTag[integerPage])
	t.Run("pointer", eachTag[pointerPage])
	t.Run("time", eachTag[timePage])
	t.Run("xmin", eachTag[xminPage])
	t.Run("Rails", eachTag[railsPage])
	t.Run("Rails, NULL", eachTag[railsNullPage])
	t.Run("Hibernate", eachTag[hibernatePage])
}

// table is the row of a test, whose key is 1.
type table[T any] struct {
	*testing.T
	db    *gorm.DB
	first *T // the row at the beginning
}

// keyed is a struct that names the row but was not read.
func (t table[T]) keyed() *T {
	row := new(T)
	reflect.ValueOf(row).Elem().FieldByName("ID").SetInt(1)
	return row
}

func (t table[T]) read() *T {
	t.Helper()
	row := new(T)
	must(t, t.db.First(row, 1).Error)
	return row
}

func (t table[T]) tag() string {
	t.Helper()
	return tagOf(t, t.read())
}

// accepts writes with these header lines in every way, and checks that the struct then equals the row.
func (t table[T]) accepts(lines func() []string) {
	t.Helper()
	for name, write := range t.ways() {
		row, err := write(ifMatch(t, lines()...), name)
		must(t, err)
		now := t.read()
		if title := reflect.ValueOf(now).Elem().FieldByName("Title").String(); title != name {
			t.Fatalf("%s: %q: the title is %q", name, lines(), title)
		}
		if row != nil && !reflect.DeepEqual(normal(row), normal(now)) {
			t.Errorf("%s: the struct is %+v, the row %+v", name, row, now)
		}
	}
}

// refuses does the same if nothing may be written.
func (t table[T]) refuses(lines ...string) {
	t.Helper()
	before := t.read()
	for name, write := range t.ways() {
		if _, err := write(ifMatch(t, lines...), "lost"); !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("%s: %q: %v", name, lines, err)
		}
	}
	if err := t.db.Clauses(ifMatch(t, lines...)).Delete(t.keyed()).Error; !errors.Is(err, gormlock.ErrStale) {
		t.Errorf("delete: %q: %v", lines, err)
	}
	if now := t.read(); !reflect.DeepEqual(normal(now), normal(before)) {
		t.Fatalf("%q: the row was %+v and is %+v", lines, before, now)
	}
}

// ways are the ways to write the row. Each returns the struct that equals the row afterwards, if there is one.
func (t table[T]) ways() map[string]func(expect etag.Precondition, title string) (*T, error) {
	return map[string]func(expect etag.Precondition, title string) (*T, error){
		"a struct that was not read": func(expect etag.Precondition, title string) (*T, error) {
			row := t.keyed()
			return row, t.db.Clauses(expect).Model(row).Update("title", title).Error
		},
		"a struct that was read": func(expect etag.Precondition, title string) (*T, error) {
			row := t.read()
			return row, t.db.Clauses(expect).Model(row).Updates(map[string]any{"title": title}).Error
		},
		"a struct that is stale": func(expect etag.Precondition, title string) (*T, error) {
			row := *t.first
			return &row, t.db.Clauses(expect).Model(&row).Updates(Page{Title: title}).Error
		},
		"many rows": func(expect etag.Precondition, title string) (*T, error) {
			return nil, t.db.Clauses(expect).Model(new(T)).Where("id = ?", 1).Update("title", title).Error
		},
		"a slice": func(expect etag.Precondition, title string) (*T, error) {
			rows := []T{*t.keyed()}
			err := t.db.Clauses(expect).Model(&rows).Update("title", title).Error
			return &rows[0], err
		},
		"gorm.G": func(expect etag.Precondition, title string) (*T, error) {
			_, err := gorm.G[T](t.db, expect).Where("id = ?", 1).Update(t.Context(), "title", title)
			return nil, err
		},
		"G.Scopes": func(expect etag.Precondition, title string) (*T, error) {
			_, err := gorm.G[T](t.db).Scopes(expect.ModifyStatement).Where("id = ?", 1).Update(t.Context(), "title", title)
			return nil, err
		},
		"Save": func(expect etag.Precondition, title string) (*T, error) {
			row := t.read()
			reflect.ValueOf(row).Elem().FieldByName("Title").SetString(title)
			return row, t.db.Clauses(expect).Save(row).Error
		},
		"a transaction": func(expect etag.Precondition, title string) (row *T, err error) {
			err = gormlock.Transaction(t.db, func(tx *gorm.DB) error {
				row = t.keyed()
				return tx.Clauses(expect).Model(row).Update("title", title).Error
			})
			return row, err
		},
	}
}

// normal is a row whose times can be compared.
func normal[T any](row *T) any {
	if timed, is := any(row).(*timePage); is {
		same := *timed
		same.Version = same.Version.UTC()
		return same
	}
	return *row
}

func eachTag[T any](t *testing.T) {
	t.Parallel()
	db := open(t, new(T))
	rows := table[T]{T: t, db: db}
	must(t, db.Create(rows.keyed()).Error)
	if _, is := any(new(T)).(*railsNullPage); is {
		must(t, db.Exec("UPDATE rails_null_pages SET lock_version = NULL").Error)
	}
	rows.first = rows.read()
	first := rows.tag()
	rows.refuses(`W/` + first)
	must(t, db.Clauses(ifMatch(t, first)).Model(rows.keyed()).Update("title", "second").Error)
	rows.refuses(first)
	rows.refuses(first, `"x", `+first)

	current := func() []string { return []string{rows.tag()} }
	rows.accepts(current)
	rows.accepts(func() []string { return []string{first + ", " + rows.tag()} })
	rows.accepts(func() []string { return []string{first, `W/` + first, `"x"`, `, ` + rows.tag()} })
	rows.accepts(func() []string { return []string{"*"} })

	rows.refuses(`W/` + rows.tag())
	for _, tag := range []string{
		`""`, `"x"`, `"0"`, `"-1"`, `"+1"`, `"01"`, `"1.0"`, `"0x1"`, `"1e0"`, `"٧"`, `"-9223372036854775808"`, `"32767"`, `"65535"`, `"2147483647"`, `"4294967296"`,
		`"9223372036854775807"`, `"9223372036854775808"`, `"18446744073709551615"`, `"99999999999999999999"`, `"null"`, `"NULL"`, `"0001-01-01T00:00:00Z"`,
		`"2026-11-23T05:20:49+00:00"`, `"2026-11-23T05:20:49.100Z"`, `"2026-11-23"`, `"infinity"`, "\"\xff\"", tagOf(t, []T{*rows.read()}),
	} {
		rows.refuses(tag)
		rows.refuses(first, tag)
	}

	must(t, db.Clauses(ifMatch(t, first, rows.tag())).Delete(rows.keyed()).Error)
	for name, write := range rows.ways() {
		if name == "Save" || name == "a struct that was read" || name == "a struct that is stale" {
			continue
		}
		for _, line := range []string{"*", first, first + `, "x"`} {
			gone := (*gormlock.StaleError)(nil)
			if _, err := write(ifMatch(t, line), "lost"); !errors.As(err, &gone) || !gone.Deleted {
				t.Errorf("%s: %s on a row that is gone: %v", name, line, err)
			}
		}
	}
	for _, line := range []string{"*", first} {
		if err := db.Clauses(ifMatch(t, line)).Save(rows.keyed()).Error; !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("Save: %s on a row that is gone: %v", line, err)
		}
	}
	if n, err := gorm.G[T](db).Count(t.Context(), "*"); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// The column of an older table may be narrower than its field.
func TestIfMatch_ofNarrowColumns(t *testing.T) {
	t.Parallel()
	db := open(t, &doc{})
	must(t, db.Exec("ALTER TABLE docs ALTER version TYPE smallint").Error)
	must(t, db.Create(&doc{ID: 1, Version: 32700}).Error)
	must(t, db.Clauses(ifMatch(t, `"32700"`)).Model(&doc{ID: 1}).Update("title", "b").Error)
	for _, lines := range [][]string{{`"32768"`}, {`"3000000000"`}, {`"32700"`, `"32768"`, `"9223372036854775806"`}} {
		if err := db.Clauses(ifMatch(t, lines...)).Model(&doc{ID: 1}).Update("title", "lost").Error; !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("%q: %v", lines, err)
		}
	}
}

func open(t testing.TB, models ...any) *gorm.DB {
	t.Helper()
	return openWith(t, models)
}

func openWith(t testing.TB, models []any, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	db := pgtest.Open(t, append(opts, pgtest.Schema(), pgtest.Plugin(plugin))...)
	must(t, db.AutoMigrate(models...))
	return db
}

// clockPage has a version without a time zone: it is what a clock shows, and the connection determines the zone.
type clockPage struct {
	Page
	Version time.Time `gorm:"type:timestamp(3) without time zone" gormlock:"version"`
}

// A timestamp without a time zone is what a clock shows, in whatever zone the connection reads it.
func TestIfMatch_ofClocks(t *testing.T) {
	t.Parallel()
	for i, zone := range []string{"UTC", "EST5EDT", "Japan"} {
		db := openWith(t, []any{&clockPage{}}, pgtest.Param("TimeZone", zone))
		row := clockPage{Page: Page{ID: int64(i + 1)}}
		must(t, db.Create(&row).Error)
		created := tagOf(t, &row)
		must(t, db.Clauses(ifMatch(t, created)).Model(&clockPage{Page: row.Page}).Update("title", "b").Error)
		must(t, db.First(&row).Error)
		must(t, db.Clauses(ifMatch(t, tagOf(t, &row))).Model(&clockPage{Page: row.Page}).Update("title", "c").Error)
		for _, old := range []string{created, tagOf(t, &row)} {
			if err := db.Clauses(ifMatch(t, old)).Model(&clockPage{Page: row.Page}).Update("title", "lost").Error; !errors.Is(err, gormlock.ErrStale) {
				t.Errorf("%s: %s: %v", zone, old, err)
			}
		}
	}
}
