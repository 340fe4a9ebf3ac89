package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type deepInner struct{ Words []string }

// DeepPart is embedded.
type DeepPart struct{ Kept *string }

type deep struct {
	ID     int64
	Note   string
	Tags   map[string][]string `gorm:"type:jsonb;serializer:json"`
	Lists  [][]int             `gorm:"type:jsonb;serializer:json"`
	Any    any                 `gorm:"type:jsonb;serializer:json"`
	Points *deepInner          `gorm:"type:jsonb;serializer:json"`
	Raw    []byte
	Inner  *DeepPart `gorm:"embedded"`
}

// What IfUnchanged compares are the values when it was called, however deep the caller changes them in place afterwards.
func TestIfUnchanged_keepsAllLevels(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&deep{}}, func(t *testing.T, db *gorm.DB) {
		word := "k"
		made := deep{
			Tags: map[string][]string{"a": {"b"}}, Lists: [][]int{{1}, {2}}, Any: map[string]any{"x": []any{"y"}}, Points: &deepInner{Words: []string{"p"}},
			Raw: []byte("raw"), Inner: &DeepPart{&word},
		}
		stand.Must(t, db.Create(&made).Error)
		for name, change := range map[string]func(d *deep){
			"tags":   func(d *deep) { d.Tags["a"][0] = "changed"; d.Tags["b"] = nil },
			"lists":  func(d *deep) { d.Lists[1][0] = 4711 },
			"any":    func(d *deep) { d.Any.(map[string]any)["x"].([]any)[0] = "changed" },
			"points": func(d *deep) { d.Points.Words[0] = "changed" },
			"raw":    func(d *deep) { d.Raw[0] = 'R' },
			"kept":   func(d *deep) { *d.Inner.Kept = "changed" },
		} {
			before := stand.Row[deep](t, db, made.ID)
			unchanged := gormlock.IfUnchanged(&before, name)
			change(&before)
			stand.Must(t, db.Clauses(unchanged).Model(&deep{ID: made.ID}).Update("note", name).Error)
			// and one that is changed before it is given is another
			err := db.Clauses(gormlock.IfUnchanged(&before, name)).Model(&deep{ID: made.ID}).Update("note", "never").Error
			stand.MustStale(t, err)
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// What another row was does not show whether this one has changed.
func TestIfUnchanged_ofAnotherRow(t *testing.T) {
	t.Parallel()
	type named struct {
		ID   string `gorm:"type:uuid;primaryKey"`
		Note string
	}
	stand.OnBoth(t, []any{&deep{}, &named{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create([]deep{{Note: "a"}, {Note: "a"}}).Error)
		one, two := stand.Row[deep](t, db, 1), stand.Row[deep](t, db, 2)
		for name, write := range map[string]func(before *deep) error{
			"update": func(before *deep) error {
				return db.Clauses(gormlock.IfUnchanged(before, "note")).Model(&two).Update("note", "b").Error
			},
			"Save":   func(before *deep) error { return db.Clauses(gormlock.IfUnchanged(before, "note")).Save(&two).Error },
			"delete": func(before *deep) error { return db.Clauses(gormlock.IfUnchanged(before, "note")).Delete(&two).Error },
		} {
			err := write(&one)
			if err == nil || !strings.Contains(err.Error(), "before is") {
				t.Errorf("%s: %v", name, err)
			}
		}
		stand.Equal(t, "note", stand.Row[deep](t, db, 2).Note, "a")
		stand.Must(t, db.Clauses(gormlock.IfUnchanged(&deep{Note: "a"}, "note")).Model(&two).Update("note", "b").Error)
		gone := deep{ID: 7}
		stand.MustStale(t, db.Clauses(gormlock.IfUnchanged(&one, "note")).Model(&gone).Update("note", "b").Error)

		const id = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
		stand.Must(t, db.Create(&named{ID: id, Note: "a"}).Error)
		if db.Name() == "postgres" { // where it is one key in two spellings
			stand.Must(t, db.Clauses(gormlock.IfUnchanged(&named{ID: strings.ToUpper(id), Note: "a"}, "note")).Model(&named{ID: id}).Update("note", "b").Error)
		}
	})
}

// A part of a key may be zero: the row is meant, and not all rows with the other part.
func TestIfUnchanged_ofAKeyWithAZeroPart(t *testing.T) {
	t.Parallel()
	type sheetCell struct {
		Sheet int64 `gorm:"primaryKey;autoIncrement:false"`
		Line  int64 `gorm:"primaryKey;autoIncrement:false"`
		Text  string
		N     int64
	}
	stand.OnBoth(t, []any{&sheetCell{}}, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(tx *gorm.DB, c *sheetCell) error{
			"Update":  func(tx *gorm.DB, c *sheetCell) error { return tx.Model(c).Update("n", 50).Error },
			"Updates": func(tx *gorm.DB, c *sheetCell) error { c.N = 50; return tx.Select("n").Updates(c).Error },
			"Save":    func(tx *gorm.DB, c *sheetCell) error { c.N = 50; return tx.Save(c).Error },
			"a map":   func(tx *gorm.DB, c *sheetCell) error { return tx.Model(c).Updates(map[string]any{"n": 50}).Error },
			"Delete":  func(tx *gorm.DB, c *sheetCell) error { c.N = 50; return tx.Delete(c).Error },
		} {
			stand.Must(t, db.Exec("DELETE FROM sheet_cells").Error)
			stand.Must(t, db.Create([]sheetCell{{1, 0, "a", 1}, {1, 1, "a", 1}, {1, 2, "c", 1}}).Error)
			var c sheetCell
			stand.Must(t, db.First(&c, "sheet = 1 AND line = 0").Error)
			before := c
			stand.Must(t, write(db.Clauses(gormlock.IfUnchanged(&before, "text")), &c))
			var n int64
			stand.Must(t, db.Model(&sheetCell{}).Where("n = 1 AND line > 0").Count(&n).Error)
			stand.Equal(t, name, n, 2)
			stand.Must(t, db.Model(&sheetCell{}).Where("n = 1 AND line = 0").Count(&n).Error)
			stand.Equal(t, name+", its own", n, 0)
			before.Text = "other"
			stand.MustStale(t, write(db.Clauses(gormlock.IfUnchanged(&before, "text")), &c))
		}
	})
}
