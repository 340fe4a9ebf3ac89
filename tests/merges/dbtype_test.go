package merges_test

import (
	"database/sql/driver"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// hour is a time of day. GORM takes its general type for that of a moment, and makes its column of the type that it has in a database.
type hour string

func (hour) GormDataType() string                          { return "time" }
func (hour) GormDBDataType(*gorm.DB, *schema.Field) string { return "TIME" }
func (h hour) Value() (driver.Value, error)                { return string(h), nil }
func (h *hour) Scan(from any) error                        { return scanText((*string)(h), from) }

// document is JSON, of another type in each database.
type document string

func (document) GormDataType() string { return "bytes" }
func (document) GormDBDataType(db *gorm.DB, _ *schema.Field) string {
	return map[string]string{"postgres": "JSONB", "mysql": "JSON", "sqlite": "TEXT"}[db.Name()]
}
func (d document) Value() (driver.Value, error) { return string(d), nil }
func (d *document) Scan(from any) error         { return scanText((*string)(d), from) }

// label is a plain text to GORM, and a uuid to PostgreSQL.
type label string

func (label) GormDBDataType(db *gorm.DB, _ *schema.Field) string {
	if db.Name() == "postgres" {
		return "uuid"
	}
	return "" // GORM then takes the general type
}

func scanText(to *string, from any) error {
	switch from := from.(type) {
	case string:
		*to = from
	case []byte:
		*to = string(from)
	default:
		return fmt.Errorf("a %T", from)
	}
	return nil
}

type shop struct {
	ID     int64
	Note   string
	Opens  hour
	Closes *hour
	Terms  document
	Code   label `gorm:"size:36"`
}

// A Go type may say what its column is made of in each database: values are compared as that type.
func TestSaveMerged_typesThatNameTheirColumn(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&shop{}}, func(t *testing.T, db *gorm.DB) {
		const code, other = "0d8d2a5e-6f8a-4b0e-9d7c-3f0a8a4b1c2d", "1d8d2a5e-6f8a-4b0e-9d7c-3f0a8a4b1c2d"
		evening, night := hour("18:00:00"), hour("23:00:00")
		made := stand.Made(t, db, shop{Opens: "08:00:00", Closes: &evening, Terms: `{"a": 1}`, Code: code})
		for column, change := range map[string]struct {
			mine   func(s *shop)
			theirs any
		}{
			"opens":  {func(s *shop) { s.Opens = "09:00:00" }, "07:00:00"},
			"closes": {func(s *shop) { s.Closes = &night }, "17:00:00"},
			"terms":  {func(s *shop) { s.Terms = `{"a": 2}` }, `{"a": 3}`},
			"code":   {func(s *shop) { s.Code = other }, "2d8d2a5e-6f8a-4b0e-9d7c-3f0a8a4b1c2d"},
		} {
			base := stand.Row[shop](t, db, made.ID)
			stand.MustDo(t, db.Clauses(gormlock.IfUnchanged(&base)).Model(&shop{ID: base.ID}).Update("note", "a"))
			stand.MustDo(t, db.Exec("UPDATE shops SET note = 'theirs'"))
			mine := base
			change.mine(&mine)
			if err := gormlock.SaveMerged(db, &mine, &base); err != nil {
				t.Errorf("%s: %v", column, err)
				continue
			}
			row, want := stand.Row[shop](t, db, made.ID), base
			change.mine(&want)
			want.Note = "theirs"
			if fmt.Sprint(row.Opens, *row.Closes, row.Terms, row.Code, row.Note) != fmt.Sprint(want.Opens, *want.Closes, want.Terms, want.Code, want.Note) {
				t.Errorf("%s: stored %+v", column, row)
			}
			stand.MustDo(t, db.Model(&shop{}).Where("id = ?", made.ID).UpdateColumn(column, change.theirs))
			stand.MustStale(t, db.Clauses(gormlock.IfUnchanged(&row)).Model(&shop{ID: row.ID}).Update("note", "b").Error)
			mine = base
			change.mine(&mine)
			if conflict := mustConflict(t, gormlock.SaveMerged(db, &mine, &base)); len(conflict) != 1 {
				t.Errorf("%s: %v", column, conflict)
			}
		}
	})
}
