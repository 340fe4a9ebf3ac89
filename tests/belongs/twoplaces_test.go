package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A writer has one paper in several associations, and a paper may be split into others.
type (
	writer struct {
		ID       int64
		Written  []*paper `gorm:"foreignKey:WriterID"`
		Reviewed []*paper `gorm:"foreignKey:ReviewerID"`
		Main     *paper   `gorm:"foreignKey:MainOfID"`
		Version  int64    `gorm:"not null;default:1" gormlock:"version"`
	}
	paper struct {
		ID                             int64
		WriterID, ReviewerID, MainOfID *int64
		OriginID                       *int64
		Origin                         *paper
		Splits                         []*paper `gorm:"foreignKey:OriginID"`
		Sheets                         []*sheet
		Version                        int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	sheet struct {
		ID, PaperID int64
		Text        string
		Version     int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

var ofWriters = []any{&writer{}, &paper{}, &sheet{}}

const (
	notStored = "would not store its"
	oneParent = "a row has one parent"
)

func keyIn(key *int64) int64 {
	if key == nil {
		return 0
	}
	return *key
}

func madePaper(t *testing.T, db *gorm.DB) *paper {
	t.Helper()
	p := &paper{Sheets: []*sheet{{Text: "1"}, {Text: "2"}}}
	stand.Must(t, db.Create(p).Error)
	return p
}

// GORM saves a struct once that two associations hold, and gives it the foreign keys of both.
func TestTwoAssociations_ofOneStruct(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, ofWriters)
	for name, c := range map[string]struct {
		save func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error)
		says string
	}{
		"new, in two": {func(_ *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			p := &paper{}
			return nil, nil, db.Create(&writer{Written: []*paper{p}, Reviewed: []*paper{p}}).Error
		}, notStored},
		"read, in two": {func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			p := madePaper(t, db)
			return []*paper{p}, nil, db.Create(&writer{Written: []*paper{p}, Reviewed: []*paper{p}}).Error
		}, notStored},
		"saved whole": {func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			p := madePaper(t, db)
			return []*paper{p}, nil, db.Session(&gorm.Session{FullSaveAssociations: true}).Create(&writer{Written: []*paper{p}, Reviewed: []*paper{p}}).Error
		}, notStored},
		"has-one and has-many": {func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			p, w := madePaper(t, db), &writer{}
			stand.Must(t, db.Create(w).Error)
			w.Main, w.Written = p, []*paper{p}
			return []*paper{p}, nil, db.Save(w).Error
		}, notStored},
		"two writers": {func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			p := madePaper(t, db)
			return []*paper{p}, nil, db.Create([]*writer{{Written: []*paper{p}}, {Reviewed: []*paper{p}}}).Error
		}, notStored},
		"what it belongs to is also its child": {func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			a, b := madePaper(t, db), madePaper(t, db)
			a.Origin, a.Splits = b, []*paper{b}
			return []*paper{a, b}, nil, db.Save(a).Error
		}, notStored},
		"sheets of the origin, in a new split": {func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			p := madePaper(t, db)
			return nil, p.Sheets, db.Create(&paper{Origin: p, Sheets: p.Sheets[1:]}).Error
		}, oneParent},
		"sheets of the origin": {func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			p, split := madePaper(t, db), madePaper(t, db)
			split.Origin, split.Sheets = p, p.Sheets[1:]
			return []*paper{p, split}, p.Sheets, db.Save(split).Error
		}, oneParent},
		"a sheet of a paper and its split": {func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			p, split := madePaper(t, db), madePaper(t, db)
			p.Splits = []*paper{split}
			stand.Must(t, db.Save(p).Error)
			split.Sheets = append(split.Sheets, p.Sheets[0])
			return []*paper{p, split}, p.Sheets, db.Save(p).Error
		}, oneParent},
		"only sheet of a paper and its split": {func(t *testing.T, db *gorm.DB) ([]*paper, []*sheet, error) {
			p, split := madePaper(t, db), &paper{}
			stand.Must(t, db.Create(split).Error)
			p.Splits = []*paper{split}
			stand.Must(t, db.Save(p).Error)
			split.Sheets = []*sheet{p.Sheets[0]}
			return []*paper{p, split}, p.Sheets, db.Save(p).Error
		}, oneParent},
	} {
		for _, explicit := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var papers []*paper
				var sheets []*sheet
				var err error
				if explicit {
					failed := db.Transaction(func(tx *gorm.DB) error {
						papers, sheets, err = c.save(t, tx)
						return nil
					})
					if failed == nil {
						t.Error("the transaction was committed")
					}
				} else {
					papers, sheets, err = c.save(t, db)
				}
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("got %v, want %q", err, c.says)
				}
				if explicit {
					return // what was made in it is gone
				}
				for _, p := range papers {
					stand.Must(t, db.Omit("Origin", "Splits", "Sheets").Save(p).Error)
					row := stand.Row[paper](t, db, p.ID)
					stand.Equal(t, "keys", [4]bool{row.WriterID == nil, row.ReviewerID == nil, row.MainOfID == nil, row.OriginID == nil},
						[4]bool{p.WriterID == nil, p.ReviewerID == nil, p.MainOfID == nil, p.OriginID == nil})
				}
				for _, s := range sheets {
					stand.Equal(t, "sheet", stand.Row[sheet](t, db, s.ID), *s)
				}
			})
		}
	}
}

// What GORM stores is not refused: a struct among others that were not saved yet is saved again, with its second foreign key.
func TestTwoAssociations_thatAreStored(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, ofWriters)
	equal := func(t *testing.T, all ...*paper) {
		t.Helper()
		for _, p := range all {
			row := stand.Row[paper](t, db, p.ID)
			stand.Equal(t, "version", row.Version, p.Version)
			stand.Equal(t, "writer", keyIn(row.WriterID), keyIn(p.WriterID))
			stand.Equal(t, "reviewer", keyIn(row.ReviewerID), keyIn(p.ReviewerID))
			stand.Equal(t, "origin", keyIn(row.OriginID), keyIn(p.OriginID))
		}
	}
	t.Run("beside another, new", func(t *testing.T) {
		p, other := &paper{}, &paper{}
		stand.Must(t, db.Create(&writer{Written: []*paper{p}, Reviewed: []*paper{p, other}}).Error)
		equal(t, p, other)
	})
	t.Run("beside another, read", func(t *testing.T) {
		p, other := madePaper(t, db), madePaper(t, db)
		stand.Must(t, db.Create(&writer{Written: []*paper{p}, Reviewed: []*paper{p, other}}).Error)
		equal(t, p, other)
		stand.Must(t, db.Save(p).Error)
	})
	t.Run("omitted", func(t *testing.T) {
		p := &paper{}
		stand.Must(t, db.Omit("Reviewed").Create(&writer{Written: []*paper{p}, Reviewed: []*paper{p}}).Error)
		equal(t, p)
	})
	t.Run("both ways", func(t *testing.T) {
		p := &paper{}
		p.Splits = []*paper{{Origin: p}, {Origin: p}}
		stand.Must(t, db.Create(p).Error)
		equal(t, p, p.Splits[0], p.Splits[1])
		stand.Must(t, db.Save(p).Error)
		equal(t, p, p.Splits[0], p.Splits[1])
	})
	t.Run("one by one", func(t *testing.T) {
		p, w := madePaper(t, db), &writer{}
		stand.Must(t, db.Create(w).Error)
		stand.Must(t, db.Model(w).Association("Written").Append(p))
		stand.Must(t, db.Model(w).Association("Reviewed").Append(p))
		equal(t, p)
		stand.Must(t, db.Save(w).Error)
		equal(t, p)
	})
}
