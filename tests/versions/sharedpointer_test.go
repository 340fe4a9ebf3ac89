package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type bench struct {
	ID      int64
	Text    string
	Tools   []*tool `gorm:"foreignKey:BenchID"`
	Version int64   `gorm:"not null;default:1" gormlock:"version"`
}

type tool struct {
	ID      int64
	Text    string
	Note    *string
	BenchID *int64
	Bench   *bench
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// plainTool is a tool without a version.
type plainTool struct {
	ID      int64
	BenchID *int64
	Bench   *bench
}

func (plainTool) TableName() string { return "tools" }

// GORM writes a foreign key through its pointer. If that points to the key of a parent, the parent keeps its key, and is written where it
// is.
func TestForeignKey_thatPointsToTheKeyOfItsParent(t *testing.T) {
	t.Parallel()
	undo := errors.New("undo")
	for name, move := range map[string]func(db *gorm.DB, to *bench, tool *tool) error{
		"Append":  func(db *gorm.DB, to *bench, tool *tool) error { return db.Model(to).Association("Tools").Append(tool) },
		"Replace": func(db *gorm.DB, to *bench, tool *tool) error { return db.Model(to).Association("Tools").Replace(tool) },
		"Save of the new parent": func(db *gorm.DB, to *bench, tool *tool) error {
			to.Tools = append(to.Tools, tool)
			return db.Save(to).Error
		},
		"Save":    func(db *gorm.DB, to *bench, tool *tool) error { tool.Bench = to; return db.Save(tool).Error },
		"Updates": func(db *gorm.DB, to *bench, tool *tool) error { tool.Bench = to; return db.Updates(tool).Error },
		"Append to the tool": func(db *gorm.DB, to *bench, tool *tool) error {
			return db.Model(tool).Association("Bench").Append(to)
		},
		"Replace of the bench": func(db *gorm.DB, to *bench, tool *tool) error {
			return db.Model(tool).Association("Bench").Replace(to)
		},
		"Update": func(db *gorm.DB, to *bench, tool *tool) error {
			return db.Model(tool).Update("bench_id", to.ID).Error
		},
		"Update of a slice": func(db *gorm.DB, to *bench, one *tool) error {
			return db.Model([]*tool{one}).Update("bench_id", to.ID).Error
		},
		"form": func(db *gorm.DB, to *bench, tool *tool) error {
			return db.Model(tool).Updates(struct{ BenchID int64 }{to.ID}).Error
		},
		"without a version": func(db *gorm.DB, to *bench, tool *tool) error {
			plain := plainTool{ID: tool.ID, BenchID: tool.BenchID}
			return db.Model(&plain).Update("bench_id", to.ID).Error
		},
		"Save without a version": func(db *gorm.DB, to *bench, tool *tool) error {
			return db.Save(&plainTool{ID: tool.ID, BenchID: tool.BenchID, Bench: to}).Error
		},
		"Append in a transaction": func(db *gorm.DB, to *bench, tool *tool) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Model(to).Association("Tools").Append(tool) })
		},
		"rolled back": func(db *gorm.DB, to *bench, tool *tool) error {
			_ = db.Transaction(func(tx *gorm.DB) error {
				tool.Bench = to
				stand.Must(t, tx.Save(tool).Error)
				return undo
			})
			stand.Equal(t, "foreign key after the rollback", *tool.BenchID != to.ID, true)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, []any{&bench{}, &tool{}}, func(t *testing.T, db *gorm.DB) {
				a, b := stand.Made(t, db, bench{Text: "a"}), bench{Text: "b"}
				stand.Must(t, db.Create(&b).Error)
				was, tools := a.ID, []tool{{BenchID: &a.ID}, {BenchID: &a.ID}}
				stand.Must(t, db.Create(&tools).Error)
				stand.Must(t, move(db, &b, &tools[0]))
				stand.Equal(t, "key of the first bench", a.ID, was)
				a.Text = "changed"
				stand.Must(t, db.Save(&a).Error)
				stand.Equal(t, "the other bench", stand.Row[bench](t, db, b.ID).Text, "b")
				tools[1].Text = "changed"
				stand.Must(t, db.Save(&tools[1]).Error)
				stand.Equal(t, "bench of the other tool", *stand.Row[tool](t, db, tools[1].ID).BenchID, was)
			})
		})
	}
}

// A column that several structs have a pointer to changes in the struct that is written, and what the program writes through its own
// pointer is stored.
func TestPointers_thatStructsShare(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&bench{}, &tool{}}, func(t *testing.T, db *gorm.DB) {
		note := "both"
		tools := []tool{{Note: &note}, {Note: &note}}
		stand.Must(t, db.Create(&tools).Error)
		stand.Must(t, db.Model(&tools[0]).Update("note", "mine").Error)
		stand.Equal(t, "the program's variable", note, "both")
		tools[1].Text = "changed"
		stand.Must(t, db.Save(&tools[1]).Error)
		stand.Equal(t, "notes", *stand.Row[tool](t, db, tools[0].ID).Note+", "+*stand.Row[tool](t, db, tools[1].ID).Note, "mine, both")
		note = "the program's"
		stand.Must(t, db.Save(&tools[1]).Error)
		stand.Equal(t, "note", *stand.Row[tool](t, db, tools[1].ID).Note, "the program's")

		// each tool of a slice gets the bench that it was given
		id, benches := int64(0), []bench{{Text: "a"}, {Text: "b"}}
		moved := []tool{{BenchID: &id, Bench: &benches[0]}, {BenchID: &id, Bench: &benches[1]}}
		stand.Must(t, db.Create(&moved).Error)
		for i := range moved {
			stand.Equal(t, "bench", *stand.Row[tool](t, db, moved[i].ID).BenchID, benches[i].ID)
		}
		stand.Equal(t, "the program's variable", id, 0)
	})
}

// With Unscoped, Replace deletes the row that was there, and not the one that it was given.
func TestUnscopedReplace_ofAPointerKey(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&bench{}, &tool{}}, func(t *testing.T, db *gorm.DB) {
		made := stand.Made(t, db, tool{Bench: &bench{Text: "old"}})
		var one tool
		stand.Must(t, db.Preload("Bench").First(&one, made.ID).Error)
		old := *one.BenchID
		stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
			return tx.Model(&one).Association("Bench").Unscoped().Replace(&bench{Text: "new"})
		}))
		var left []bench
		stand.Must(t, db.Find(&left).Error)
		stand.Equal(t, "one is left", len(left), 1)
		stand.Equal(t, "the new one", left[0].Text, "new")
		stand.Equal(t, "its key", *one.BenchID != old && *one.BenchID == left[0].ID, true)
	})
}
