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
