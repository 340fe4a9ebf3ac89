package invariants

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/invariants/internal/models"
)

// part is a versioned model that is embedded twice.
type part struct {
	ID      int64
	A       int64
	Version int64 `gormlock:"version"`
}

func (part) TableName() string { return "tags" }

// TestTwoEmbeddedModels: a struct that embeds two models under prefixes holds two versions, and neither may stand for a
// row that the other changed.
func TestTwoEmbeddedModels(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t)
	n := w.storeHousehold(t)
	var both struct {
		L part `gorm:"embedded;embeddedPrefix:l_"`
		R part `gorm:"embedded;embeddedPrefix:r_"`
	}
	db := w.dbs["default"]
	err := db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Model(&Tag{}).Where("id = ?", n).Update("a", written).Error)
		must(t, tx.Model(&Tag{}).Select("id l_id, a l_a, version l_version, id r_id, a r_a, version r_version").Where("id = ?", n).Find(&both).Error)
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	w.exec(t, "UPDATE tags SET b = 777, version = version + 1 WHERE id = $1", n)
	for name, p := range map[string]*part{"left": &both.L, "right": &both.R} {
		p.A = 4711
		if err := db.Save(p).Error; !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Errorf("the %s part, read in a transaction that was rolled back, is saved: %v", name, err)
		}
	}
}

// TestResolverClauses: a write that names its resolver is compared, and put back, like any other.
func TestResolverClauses(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t)
	db := w.dbs["dbresolver before"]
	for name, chained := range map[string]clause.Expression{"Write": dbresolver.Write, "Use": dbresolver.Use(""), "Read": dbresolver.Read} {
		n := w.storeHousehold(t)
		var tag Tag
		must(t, w.plain.First(&tag, n).Error)
		err := db.Clauses(chained).Transaction(func(tx *gorm.DB) error {
			must(t, tx.Model(&tag).Update("a", written).Error)
			return errUndo
		})
		if !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
		w.rivalWrites(t, tags, &tag, rivals)
		for call, err := range map[string]error{
			"Update":                  db.Clauses(chained).Model(&tag).Update("a", 4711).Error,
			"Save":                    db.Clauses(chained).Save(&tag).Error,
			"Save without the clause": db.Save(&tag).Error,
		} {
			if !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%s, %s after a rollback and a rival: %v, and the struct is at %d", name, call, err, tag.Version)
			}
		}
	}
}

// TestDateIsNoVersion: a date moves once a day, so that it compares nothing.
func TestDateIsNoVersion(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t)
	type Dated struct {
		ID      int64
		A       int64
		Version time.Time `gorm:"type:date" gormlock:"version"`
	}
	w.exec(t, "CREATE TABLE dateds (id bigint PRIMARY KEY, a bigint, version date)")
	w.exec(t, "INSERT INTO dateds VALUES (1, 10, '2020-01-01')")
	var d Dated
	if err := w.dbs["default"].First(&d, 1).Error; err != nil {
		return // refused on the first use
	}
	if err := w.dbs["default"].Model(&d).Update("a", written).Error; err == nil {
		t.Errorf("a version of type date is taken: %+v", d)
	}
}

// TestNullVersions: rows from before there was a version are written once by each who read them so.
func TestNullVersions(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t)
	db := w.dbs["default"]
	for _, model := range []any{&models.Null{}, &models.Pointer{}, &models.RailsNull{}} {
		t.Run(fmt.Sprintf("%T", model), func(t *testing.T) {
			stmt := &gorm.Statement{DB: w.plain}
			must(t, stmt.Parse(model))
			s := shapeOfTable(stmt.Schema.Table)
			n := w.keys.Add(1)
			w.exec(t, fmt.Sprintf("INSERT INTO %s (id, a, b, u, note, %s) VALUES ($1, 10, 20, $2, '', NULL)", s.table, s.version.DBName), n, fmt.Sprint("null-", n))
			first, second := s.pointer(), s.pointer()
			must(t, db.First(first, n).Error)
			must(t, db.First(second, n).Error)
			if err := db.Model(first).Update("a", written).Error; err != nil {
				if !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Fatal(err)
				}
				return
			}
			if err := db.Model(second).Update("b", 777).Error; !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("the second of two who read NULL: %v", err)
			}
		})
	}
}

// TestOldTextsAreComparedByTheirBytes: IfUnchanged is not fooled by a collation that calls different texts equal.
func TestOldTextsAreComparedByTheirBytes(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t)
	type Worded struct {
		ID   int64
		Word string
	}
	columns := []string{`text COLLATE "loose"`}
	w.exec(t, `CREATE COLLATION "loose" (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`)
	if _, err := w.sql.Exec("CREATE EXTENSION citext"); err == nil {
		columns = append(columns, "citext")
	}
	for _, column := range columns {
		t.Run(column, func(t *testing.T) {
			w.exec(t, "DROP TABLE IF EXISTS wordeds")
			w.exec(t, "CREATE TABLE wordeds (id bigint PRIMARY KEY, word "+column+")")
			w.exec(t, "INSERT INTO wordeds VALUES (1, 'word')")
			db := w.dbs["simple protocol"]
			var before Worded
			must(t, db.First(&before, 1).Error)
			w.exec(t, "UPDATE wordeds SET word = 'WORD'")
			mine := before
			err := db.Model(&mine).Clauses(gormlock.IfUnchanged(&before, "word")).Update("word", "mine").Error
			if !errors.Is(err, gormlock.ErrStale) {
				t.Errorf("word became WORD, and the update said %v", err)
			}
		})
	}
}
