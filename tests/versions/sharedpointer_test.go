package versions_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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

type datedTool struct {
	ID        int64
	Text      string
	Note      *string
	Memo      *string
	BenchID   *int64
	CreatedAt *time.Time
	UpdatedAt *time.Time
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type claimed struct {
	ID      int64
	Since   *time.Time
	OtherID *int64
	OwnerID *int64
	Owner   *dated
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type dated struct {
	ID        int64
	Text      string
	CreatedAt time.Time
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

// Each struct of a slice gets what the update of the slice has set, though all had one pointer.
func TestPointers_ofASlice(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&datedTool{}}, func(t *testing.T, db *gorm.DB) {
		note, bench, form := "todo", int64(7), "form"
		tools := []*datedTool{{Note: &note, BenchID: &bench}, {Note: &note, BenchID: &bench}, {Note: &note, BenchID: &bench}}
		check := func(want string) {
			t.Helper()
			for _, one := range tools {
				one.Text += "."
				stand.Must(t, db.Save(one).Error)
				stand.Equal(t, "note", *stand.Row[datedTool](t, db, one.ID).Note, want)
			}
		}
		stand.Must(t, db.Create(&tools).Error)
		stand.Must(t, db.Model(&tools).Update("note", "done").Error)
		check("done")
		stand.Must(t, db.Model(&tools).Updates(datedTool{Note: &form}).Error) // GORM gives all of them this pointer
		stand.Must(t, db.Model(&tools).Updates(map[string]any{"note": "map", "bench_id": 8}).Error)
		check("map")
		stand.Must(t, db.Model(&tools).UpdateColumn("note", "column").Error)
		check("column")
		for _, one := range tools {
			stand.Equal(t, "bench", *stand.Row[datedTool](t, db, one.ID).BenchID, 8)
		}
		stand.Equal(t, "the program's variables", note+form, "todoform")
	})
}

// Two columns of a struct may have one pointer.
func TestPointers_ofTwoColumns(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&datedTool{}}, func(t *testing.T, db *gorm.DB) {
		for range 20 {
			text, now := "x", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			one := stand.Made(t, db, datedTool{Note: &text, Memo: &text, CreatedAt: &now, UpdatedAt: &now})
			stand.Must(t, db.Model(&one).Update("note", "m").Error)
			one.Text = "changed"
			stand.Must(t, db.Save(&one).Error)
			row := stand.Row[datedTool](t, db, one.ID)
			stand.Equal(t, "note and memo", *row.Note+*row.Memo, "mx")
			stand.Equal(t, "created", row.CreatedAt.Equal(now), true)
			one.CreatedAt, one.UpdatedAt = &now, &now
			stand.Must(t, db.Save([]*datedTool{&one}).Error)
			stand.Equal(t, "created stays", one.CreatedAt.Equal(row.CreatedAt.UTC()), true)
			row = stand.Row[datedTool](t, db, one.ID)
			stand.Equal(t, "updated", one.UpdatedAt.After(now) && row.UpdatedAt.Sub(*one.UpdatedAt).Abs() < time.Millisecond, true)
		}
	})
}

// What a statement fills in stays behind the pointers that lead there.
func TestPointers_toWhatAStatementFillsIn(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&dated{}, &claimed{}}, func(t *testing.T, db *gorm.DB) {
		o := dated{Text: "o"}
		one := claimed{Since: &o.CreatedAt, OtherID: &o.ID, Owner: &o}
		stand.Must(t, db.Create(&one).Error)
		stand.Equal(t, "key and time of the owner", o.ID != 0 && !o.CreatedAt.IsZero(), true)
		stand.Equal(t, "stored", *stand.Row[claimed](t, db, one.ID).OtherID, o.ID)
		o.Text = "changed"
		stand.Must(t, db.Save(&o).Error)
		var n int64
		stand.Must(t, db.Model(&dated{}).Count(&n).Error)
		stand.Equal(t, "owners", n, 1)

		itself := claimed{}
		itself.OtherID = &itself.ID
		stand.Must(t, db.Create(&itself).Error)
		stand.Equal(t, "its key", itself.ID != 0 && *itself.OtherID == itself.ID, true)
		stand.Must(t, db.Save(&itself).Error)
	})
}

// A rollback writes nothing through a pointer that the program has, and a statement that returns whole rows replaces none.
func TestPointers_thatTheProgramWritesThrough(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&datedTool{}}, func(t *testing.T, db *gorm.DB) {
		note := "a"
		one, other := stand.Made(t, db, datedTool{Note: &note}), stand.Made(t, db, datedTool{Note: &note})
		tx := db.Begin()
		stand.Must(t, tx.Model(&one).Update("note", "u").Error)
		note = "b"
		stand.Must(t, tx.Rollback().Error)
		stand.Must(t, db.Save(&other).Error)
		stand.Equal(t, "the program's variable", note, "b")
		stand.Equal(t, "the other row", *stand.Row[datedTool](t, db, other.ID).Note, "b")
		stand.Equal(t, "the struct", *one.Note, "a")

		for name, write := range map[string]func(db *gorm.DB, tools []*datedTool) error{
			"Save of a slice": func(db *gorm.DB, tools []*datedTool) error { return db.Save(tools).Error },
			"upsert": func(db *gorm.DB, tools []*datedTool) error {
				return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(tools[0]).Error
			},
			"Update of another column": func(db *gorm.DB, tools []*datedTool) error { return db.Model(tools[0]).Update("text", "x").Error },
			"Updates":                  func(db *gorm.DB, tools []*datedTool) error { return db.Updates(tools[0]).Error },
		} {
			for _, end := range []error{nil, errors.New("undo")} {
				note = "a"
				tools := []*datedTool{{Note: &note}, {}}
				stand.Must(t, db.Create(&tools).Error)
				tools[0].Text = "t"
				_ = db.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, write(tx, tools))
					return end
				})
				note = "b"
				stand.Must(t, db.Save(tools[0]).Error)
				if row := stand.Row[datedTool](t, db, tools[0].ID); *row.Note != "b" {
					t.Errorf("after %s, end %v, the row has %q", name, end, *row.Note)
				}
			}
		}
	})
}

// A foreign key that the program has set stays in the struct, and is stored by its next Save, whatever is updated before.
func TestPointers_thatTheProgramHasSet(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&bench{}, &tool{}}, func(t *testing.T, db *gorm.DB) {
		a, b := stand.Made(t, db, bench{Text: "a"}), stand.Made(t, db, bench{Text: "b"})
		for name, write := range map[string]func(one *tool) error{
			"Update":       func(one *tool) error { return db.Model(one).Update("text", "x").Error },
			"Updates":      func(one *tool) error { return db.Model(one).Updates(tool{Text: "x"}).Error },
			"form":         func(one *tool) error { return db.Model(one).Updates(struct{ Text string }{"x"}).Error },
			"UpdateColumn": func(one *tool) error { return db.Model(one).UpdateColumn("text", "x").Error },
			"Select":       func(one *tool) error { one.Text = "x"; return db.Select("Text").Updates(one).Error },
			"Omit":         func(one *tool) error { one.Text = "x"; return db.Omit("BenchID").Updates(one).Error },
			"slice":        func(one *tool) error { return db.Model([]*tool{one}).Update("text", "x").Error },
			"twice":        func(one *tool) error { return db.Model([]*tool{one, one}).Update("text", "x").Error },
			"Touch":        func(one *tool) error { return gormlock.Touch(db, one) },
			"IfUnchanged": func(one *tool) error {
				base := stand.Row[tool](t, db, one.ID)
				return db.Clauses(gormlock.IfUnchanged(&base)).Model(one).Update("text", "x").Error
			},
			"ExpectVersion": func(one *tool) error {
				return db.Clauses(gormlock.ExpectVersion(1)).Model(one).Update("text", "x").Error
			},
		} {
			note := "n"
			one := tool{Note: &note, BenchID: &a.ID}
			stand.Must(t, db.Create(&one).Error)
			one.BenchID = &b.ID
			if err := write(&one); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			note = "changed"
			stand.Must(t, db.Save(&one).Error)
			if row := stand.Row[tool](t, db, one.ID); one.BenchID != &b.ID || *row.BenchID != b.ID || *row.Note != "changed" {
				t.Errorf("%s: the row is of bench %d and says %q", name, *row.BenchID, *row.Note)
			}
		}
		stand.Equal(t, "keys", a.ID != b.ID, true)
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
