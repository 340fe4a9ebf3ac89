package versions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type beating struct {
	ID      int64
	Name    string
	Beat    int64     `gormlock:"unversioned,renewed"`
	At      time.Time `gormlock:"unversioned,renewed"`
	Version int64     `gormlock:"version"`
}

// What others renew, a struct that was read before does not write back. Who names the column writes it.
func TestRenewed_aStructLeavesIt(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&beating{}}, func(t *testing.T, db *gorm.DB) {
		at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		whole := db.Clauses(clause.OnConflict{UpdateAll: true})
		for name, c := range map[string]struct {
			write func(b *beating) error
			beat  int64 // that the row has afterwards
		}{
			"Save":             {func(b *beating) error { return db.Save(b).Error }, 7},
			"Save, changed":    {func(b *beating) error { b.Beat = 5; return db.Save(b).Error }, 7},
			"Save of a slice":  {func(b *beating) error { return db.Save([]*beating{b}).Error }, 7},
			"Updates":          {func(b *beating) error { return db.Updates(b).Error }, 7},
			"all columns":      {func(b *beating) error { return db.Model(b).Select("*").Updates(b).Error }, 7},
			"upsert":           {func(b *beating) error { return whole.Create(b).Error }, 7},
			"IgnoreVersion":    {func(b *beating) error { return db.Clauses(gormlock.IgnoreVersion()).Save(b).Error }, 7},
			"named in a map":   {func(b *beating) error { return db.Model(b).Updates(map[string]any{"beat": 5}).Error }, 5},
			"named in Select":  {func(b *beating) error { b.Beat = 5; return db.Model(b).Select("name", "beat").Updates(b).Error }, 5},
			"named as Update":  {func(b *beating) error { return db.Model(b).Update("beat", 5).Error }, 5},
			"named in Columns": {func(b *beating) error { return db.Model(b).UpdateColumn("Beat", 5).Error }, 5},
		} {
			made := &beating{Name: name, Beat: 1, At: at}
			stand.Must(t, db.Create(made).Error)
			stand.Must(t, db.Exec("UPDATE beatings SET beat = 7 WHERE id = ?", made.ID).Error)
			made.Name += "!"
			stand.Must(t, c.write(made))
			row := stand.Row[beating](t, db, made.ID)
			stand.Equal(t, name, row.Beat, c.beat)
			if !row.At.Equal(at) {
				t.Errorf("%s: %s", name, row.At)
			}
			made.Name = "later"
			if err := db.Save(made).Error; err != nil {
				t.Errorf("%s, later: %v", name, err)
			}
		}
		stand.Must(t, db.Save(&beating{ID: 77, Beat: 3, At: at}).Error) // which is new
		if row := stand.Row[beating](t, db, 77); row.Beat != 3 || !row.At.Equal(at) {
			t.Errorf("%+v", row)
		}
		made := &beating{Beat: 1}
		stand.Must(t, db.Create(made).Error)
		for name, err := range map[string]error{
			"another value": db.Model(made).Updates(beating{Beat: 2}).Error,
			"another time":  db.Model(made).Updates(beating{At: at}).Error,
		} {
			if !errors.Is(err, gormlock.ErrOption) || !strings.Contains(err.Error(), "renewed by others") || strings.Contains(err.Error(), "lock option") {
				t.Errorf("%s: %v", name, err)
			}
		}
		type wrong struct {
			ID      int64
			Beat    int64 `gormlock:"unversioned,renewing"`
			Version int64 `gormlock:"version"`
		}
		if err := db.First(&wrong{}).Error; err == nil || !strings.Contains(err.Error(), `remove "renewing"`) {
			t.Errorf("a wrong tag: %v", err)
		}
	})
}
