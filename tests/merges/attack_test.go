package merges_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// With a version that a trigger moves, mine has the row's version afterwards, whatever the trigger made of it.
func TestSaveMerged_versionTrigger(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&page{}})
	stand.Must(t, db.Exec(gormlock.VersionTrigger("pages", "version")).Error)
	base, mine := opened(t, db)
	stand.Must(t, db.Exec("UPDATE pages SET body = 'theirs'").Error) // a program that has never heard of versions
	mine.Title = "mine"
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	stand.Equal(t, "body", *mine.Body, "theirs")
	mustBeRow(t, db, mine)
	mine.Title = "next"
	stand.Must(t, db.Save(&mine).Error)
	stand.Equal(t, "version", stand.Row[page](t, db, mine.ID).Version, mine.Version)
	late := base
	late.Title = "late"
	mustConflict(t, gormlock.SaveMerged(db, &late, &base))
	base = mine
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	mustBeRow(t, db, mine)
	stand.Equal(t, "version of no change", mine.Version, base.Version)
}

// A base of which some columns were read says nothing of the others: they stay, or are a conflict.
func TestSaveMerged_baseInPart(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&page{}}, func(t *testing.T, db *gorm.DB) {
		whole, _ := opened(t, db)
		var base page
		stand.Must(t, db.Select("id", "title", "version").First(&base, whole.ID).Error)
		mine := base
		mine.Title = "mine"
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "body", *mine.Body, "body")
		mustBeRow(t, db, mine)
		base.Version, mine = 1, base
		mine.Body = text("mine")
		mustConflict(t, gormlock.SaveMerged(db, &mine, &base))
		base = page{}
		stand.Must(t, db.Select("id", "title").First(&base, whole.ID).Error)
		mine = base
		mine.Title = "again"
		if err := gormlock.SaveMerged(db, &mine, &base); !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Error(err)
		}
	})
}

// set has columns with values that the database or GORM gives them.
type set struct {
	ID      int64
	Count   int     `gorm:"default:5"`
	Word    string  `gorm:"default:w"`
	Maybe   *string `gorm:"default:m"`
	Made    time.Time
	Created time.Time `gorm:"autoCreateTime"`
	Updated int64     `gorm:"autoUpdateTime:milli"`
	Version int64     `gorm:"not null;default:1" gormlock:"version"`
}

func (set) TableName() string { return "the sets" }

// Zero is a value where the column has a default, too.
func TestSaveMerged_defaults(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&set{}}, func(t *testing.T, db *gorm.DB) {
		base := set{}
		stand.Must(t, db.Create(&base).Error)
		base = stand.Row[set](t, db, base.ID)
		mine := base
		mine.Count, mine.Word, mine.Maybe = 0, "", nil
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		row := stand.Row[set](t, db, base.ID)
		if row.Count != 0 || row.Word != "" || row.Maybe != nil || row.Version != 2 || !reflect.DeepEqual(row, mine) {
			t.Errorf("%+v, mine %+v", row, mine)
		}
	})
}

// What tx has on it is heeded, or refused: nothing is done otherwise than asked, and mine stays as it was on an error.
func TestSaveMerged_whatIsOnTx(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&team{}, &member{}, &badge{}})
	for name, on := range map[string]func(*gorm.DB) *gorm.DB{
		"Joins":          func(tx *gorm.DB) *gorm.DB { return tx.Joins("Team") },
		"a join by hand": func(tx *gorm.DB) *gorm.DB { return tx.Joins("JOIN teams ON teams.id = members.team_id") },
		"Preload":        func(tx *gorm.DB) *gorm.DB { return tx.Preload("Team").Preload("Badges") },
		"Limit":          func(tx *gorm.DB) *gorm.DB { return tx.Limit(1) },
		"Limit 0":        func(tx *gorm.DB) *gorm.DB { return tx.Limit(0) },
		"Offset":         func(tx *gorm.DB) *gorm.DB { return tx.Offset(1) },
		"Order":          func(tx *gorm.DB) *gorm.DB { return tx.Order("name") },
		"Group":          func(tx *gorm.DB) *gorm.DB { return tx.Group("id") },
		"Distinct":       func(tx *gorm.DB) *gorm.DB { return tx.Distinct() },
		"Or":             func(tx *gorm.DB) *gorm.DB { return tx.Where("name = 'x'").Or("name = 'm'") },
		"Or alone":       func(tx *gorm.DB) *gorm.DB { return tx.Or("name = 'm'") },
		"Not":            func(tx *gorm.DB) *gorm.DB { return tx.Not("name = 'x'") },
		"Scopes": func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(func(q *gorm.DB) *gorm.DB { return q.Where("name = 'm'") })
		},
		"Returning": func(tx *gorm.DB) *gorm.DB {
			return tx.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}}})
		},
		"Locking":    func(tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.Locking{Strength: "UPDATE"}) },
		"OnConflict": func(tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.OnConflict{DoNothing: true}) },
		"Set":        func(tx *gorm.DB) *gorm.DB { return tx.Clauses(setOf("nick", "set")) },
		"Assign":     func(tx *gorm.DB) *gorm.DB { return tx.Assign(member{Nick: "a"}) },
		"Attrs":      func(tx *gorm.DB) *gorm.DB { return tx.Attrs(member{Nick: "a"}) },
		"an alias":   func(tx *gorm.DB) *gorm.DB { return tx.Table("members AS m") },
		"a sub-query": func(tx *gorm.DB) *gorm.DB {
			return tx.Table("(?) AS m", tx.Session(&gorm.Session{NewDB: true}).Model(&member{}))
		},
		"AllowGlobal":          func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{AllowGlobalUpdate: true}) },
		"FullSave":             func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{FullSaveAssociations: true}) },
		"QueryFields":          func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{QueryFields: true}) },
		"CreateBatchSize":      func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{CreateBatchSize: 1}) },
		"Model":                func(tx *gorm.DB) *gorm.DB { return tx.Model(&member{}) },
		"Model of another":     func(tx *gorm.DB) *gorm.DB { return tx.Model(&member{ID: 1 << 40}) },
		"Omit, an association": func(tx *gorm.DB) *gorm.DB { return tx.Omit("Team") },
		"an ended context": func(tx *gorm.DB) *gorm.DB {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return tx.WithContext(ctx)
		},
	} {
		base, teams := staffed(t, db)
		mine, theirs := base, base
		stand.Must(t, db.Model(&theirs).Omit(clause.Associations).Update("home_code", "c").Error)
		mine.Name = "mine"
		was := mine
		err := gormlock.SaveMerged(on(db), &mine, &base)
		var row member
		stand.Must(t, db.First(&row, base.ID).Error)
		want := member{ID: base.ID, Name: "m", TeamID: &teams[0].ID, HomeCode: "c", Nick: "n", Version: 2}
		if err == nil {
			want.Name, want.Version = "mine", 3
			if mine.HomeCode != "c" || mine.Version != 3 || mine.Home.ID != 0 && mine.Home.Code != "c" || mine.Team == nil {
				t.Errorf("%s: mine is %+v", name, mine)
			}
		} else if !reflect.DeepEqual(mine, was) {
			t.Errorf("%s: %v, and mine is %+v", name, err, mine)
		}
		if !reflect.DeepEqual(row, want) {
			t.Errorf("%s: %v, and the row is %+v", name, err, row)
		}
	}
}

func setOf(column string, value any) clause.Set {
	return clause.Set{{Column: clause.Column{Name: column}, Value: value}}
}

// Two merges of one struct in one transaction are both taken back with it, and the last is kept by its commit.
func TestSaveMerged_twiceInATransaction(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&page{}}, func(t *testing.T, db *gorm.DB) {
		for _, commits := range []bool{false, true} {
			base, mine := opened(t, db)
			mine.Title = "one"
			was := mine
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
				between := mine
				mine.Body = text("two")
				stand.Must(t, gormlock.SaveMerged(tx, &mine, &between))
				if !commits {
					return errHook
				}
				return nil
			})
			if commits {
				stand.Must(t, err)
				stand.Equal(t, "version", mine.Version, 3)
				mustBeRow(t, db, mine)
				continue
			}
			// The body was set between, by the caller: it is his.
			mine.Seen, was.Body = "", mine.Body
			if !errors.Is(err, errHook) || *mine.Body != "two" || !reflect.DeepEqual(mine, was) {
				t.Errorf("%v: mine is %+v, was %+v", err, mine, was)
			}
		}
	})
}

// What is no pointer to a struct with a row is refused.
func TestSaveMerged_ofNoStructs(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&page{}})
	base, mine := opened(t, db)
	twice := &mine
	var none *page
	for name, err := range map[string]error{
		"maps":               gormlock.SaveMerged(db, &map[string]any{"id": 1}, &map[string]any{"id": 1}),
		"nil":                gormlock.SaveMerged(db, nil, nil),
		"a nil mine":         gormlock.SaveMerged(db, none, &base),
		"a nil base":         gormlock.SaveMerged(db, &mine, none),
		"pointers to one":    gormlock.SaveMerged(db, &twice, &twice),
		"numbers":            gormlock.SaveMerged(db, new(int), new(int)),
		"nothing to merge":   gormlock.SaveMerged(db, &time.Time{}, &time.Time{}),
		"structs by value":   gormlock.SaveMerged(db, mine, base),
		"interfaces to them": gormlock.SaveMerged(db, ptr(any(&mine)), ptr(any(&base))),
	} {
		if err == nil || errors.Is(err, gormlock.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
