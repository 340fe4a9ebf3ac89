package versions_test

import (
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A signedOff model has no hooks: callbacks change what is updated.
type signedOff struct {
	ID      int64
	Name    string
	By      string
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A version that a callback puts into the values is not the one that the caller read, and one that the caller names counts whatever else a
// callback changes there.
func TestUpdate_whoseCallbackChangesValues(t *testing.T) {
	t.Parallel()
	inMap := func(change func(values map[string]any)) func(tx *gorm.DB) {
		return func(tx *gorm.DB) {
			if values, is := tx.Statement.Dest.(map[string]any); is {
				change(values)
			}
		}
	}
	count := func(values map[string]any) {
		if version, named := values["version"].(int64); named {
			values["version"] = version + 1
		}
	}
	for name, callback := range map[string]struct {
		change func(tx *gorm.DB)
		counts bool
	}{
		"sets another":    {func(tx *gorm.DB) { tx.Statement.SetColumn("By", "me") }, false},
		"adds another":    {inMap(func(values map[string]any) { values["by"] = "me" }), false},
		"takes one out":   {inMap(func(values map[string]any) { delete(values, "note") }), false},
		"renames one":     {inMap(func(values map[string]any) { delete(values, "note"); values["by"] = "me" }), false},
		"counts":          {inMap(count), true},
		"counts and adds": {inMap(func(values map[string]any) { count(values); values["by"] = "me" }), true},
		"adds a version":  {inMap(func(values map[string]any) { delete(values, "note"); values["version"] = int64(2) }), true},
		"sets a version":  {func(tx *gorm.DB) { tx.Statement.SetColumn("Version", int64(2)) }, true},
	} {
		for _, before := range []string{"gorm:update", "gorm:before_update", "gorm:setup_reflect_value"} {
			for _, first := range []bool{true, false} {
				what := fmt.Sprintf("%s, before %s, registered first: %v", name, before, first)
				db := pgtest.Open(t, pgtest.Schema(), pgtest.MaxConns(1))
				stand.Must(t, db.AutoMigrate(&signedOff{}))
				register := func() {
					stand.Must(t, db.Callback().Update().Before(before).Register("stamp", callback.change))
				}
				if first {
					register()
				}
				stand.Must(t, db.Use(gormlock.New()))
				if !first {
					register()
				}
				updates := map[string]func(version int64) *gorm.DB{
					"by key": func(version int64) *gorm.DB {
						return db.Model(&signedOff{}).Where("id = 1").Updates(map[string]any{"name": "mine", "note": "x", "version": version})
					},
					"struct": func(version int64) *gorm.DB {
						return db.Model(&signedOff{ID: 1, Version: version}).Updates(map[string]any{"name": "mine", "note": "x"})
					},
					"form": func(version int64) *gorm.DB {
						return db.Model(&signedOff{ID: 1}).Updates(map[string]any{"name": "mine", "note": "x", "version": version})
					},
				}
				for way, update := range updates {
					for _, version := range []int64{1, 2} { // the row is at 2
						stand.MustDo(t, db.Exec("DELETE FROM signed_offs"))
						stand.MustDo(t, db.Exec("INSERT INTO signed_offs (id, name, version) VALUES (1, 'theirs', 2)"))
						err := update(version).Error
						row := stand.Row[signedOff](t, db, 1)
						switch {
						case version == 1 && (err == nil || row.Name != "theirs"):
							t.Errorf("%s, %s: stale: %v: %+v", what, way, err, row)
						case version == 2 && !callback.counts && (err != nil || row.Name != "mine" || row.Version != 3):
							t.Errorf("%s, %s: fresh: %v: %+v", what, way, err, row)
						}
					}
				}
			}
		}
	}
}
