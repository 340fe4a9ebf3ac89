package rollbacks_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// recopied are steps that write the lines of an order, and steps in which GORM copies them to another slice.
var recopied = map[rune]func(tx *gorm.DB, o *stand.LinedOrder) error{
	'k': func(tx *gorm.DB, o *stand.LinedOrder) error { o.Lines[0].Qty = 5; return tx.Save(&o.Lines[0]).Error },
	'u': func(tx *gorm.DB, o *stand.LinedOrder) error { return tx.Model(&o.Lines[0]).Update("qty", 5).Error },
	'p': func(tx *gorm.DB, o *stand.LinedOrder) error { o.Title = "x"; return tx.Save(o).Error },
	'F': func(tx *gorm.DB, o *stand.LinedOrder) error {
		o.Lines[0].Qty = 5
		return tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(o).Error
	},
	'A': func(tx *gorm.DB, o *stand.LinedOrder) error {
		return tx.Model(o).Association("Lines").Append(&stand.LinedLine{Qty: 9})
	},
	'R': func(tx *gorm.DB, o *stand.LinedOrder) error {
		return tx.Model(o).Association("Lines").Replace(&o.Lines[0], &stand.LinedLine{Qty: 9})
	},
	'D': func(tx *gorm.DB, o *stand.LinedOrder) error {
		return tx.Model(o).Association("Lines").Delete(&stand.LinedLine{ID: o.Lines[len(o.Lines)-1].ID})
	},
	'r': func(tx *gorm.DB, o *stand.LinedOrder) error { return tx.Preload("Lines").First(o, o.ID).Error },
	'f': func(tx *gorm.DB, o *stand.LinedOrder) error { return tx.First(o, o.ID).Error },
	'c': func(tx *gorm.DB, _ *stand.LinedOrder) error { return tx.Create(&stand.LinedOrder{}).Error },
	's': func(_ *gorm.DB, o *stand.LinedOrder) error {
		slices.Reverse(o.Lines)
		return nil
	},
	'x': func(_ *gorm.DB, o *stand.LinedOrder) error {
		o.Lines = append(o.Lines[:0], o.Lines[1:]...)
		return nil
	},
	'l': func(tx *gorm.DB, o *stand.LinedOrder) error {
		var list []stand.LinedLine
		return tx.Find(&list, "order_id = ?", o.ID).Error
	},
}

// However often GORM has copied the lines of an order, after a rollback no copy has a version that was never committed: not those that the order
// holds, and not those to which the program kept a pointer.
func TestRollback_ofLinesThatAreCopiedAgain(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}})
	for _, program := range []string{
		"kD", "kA", "kAD", "AkD", "ADk", "kDA", "kR", "kRD", "kDR", "kAA", "kAAD", "kADA", "uAD", "pkAD", "kpAD", "kApD", "kADp", "kfAD", "krAD", "kArD", "kAfD", "kAkD",
		"kAkDk", "kRA", "AD", "AAD", "ADD", "ADA", "kDD", "kADD", "rkAD", "kAR", "kRR", "FD", "FA", "FDA", "FDD", "FAA", "FAD", "FDAA", "kpDA", "kpDD",
	} {
		for _, read := range []bool{false, true} {
			for end, run := range map[string]func(body func(tx *gorm.DB) error) error{
				"rolled back": func(body func(tx *gorm.DB) error) error { return db.Transaction(body) },
				"nested": func(body func(tx *gorm.DB) error) error {
					return db.Transaction(func(tx *gorm.DB) error { return tx.Transaction(body) })
				},
			} {
				o := stand.LinedOrder{Lines: []stand.LinedLine{{}, {}, {}}}
				stand.MustDo(t, db.Create(&o))
				if id := o.ID; read {
					o = stand.LinedOrder{}
					stand.MustDo(t, db.Preload("Lines").First(&o, id))
				}
				var pointers []*stand.LinedLine
				undone := run(func(tx *gorm.DB) error {
					for _, step := range program {
						pointers = append(pointers, &o.Lines[0])
						if err := recopied[step](tx, &o); err != nil {
							return err
						}
					}
					return errUndo
				})
				if !errors.Is(undone, errUndo) {
					t.Errorf("%s, %s: %v", program, end, undone)
				}
				for i := range o.Lines {
					pointers = append(pointers, &o.Lines[i])
				}
				for _, line := range pointers {
					var rows []stand.LinedLine
					stand.MustDo(t, db.Find(&rows, "id = ?", line.ID))
					if line.Version != 0 && (len(rows) == 0 || line.Version > rows[0].Version) {
						t.Errorf("%s, read %t, %s: %+v of %+v", program, read, end, *line, rows)
					}
				}
			}
		}
	}
}

// A nested part that is rolled back leaves the slice that GORM has made in it.
func TestRollback_ofLinesThatANestedPartHasCopied(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}})
	for _, program := range []string{"F(D)A", "F(A)DA", "k(A)DA", "l(A)DA", "kp(D)D", "F(DA)D", "F(D)(A)A", "kp((D)A)D"} {
		o := stand.LinedOrder{Lines: []stand.LinedLine{{}, {}, {}, {}, {}}}
		stand.MustDo(t, db.Create(&o))
		var pointers []*stand.LinedLine
		var run func(tx *gorm.DB, steps []rune) (rest []rune)
		run = func(tx *gorm.DB, steps []rune) []rune {
			for len(steps) > 0 && steps[0] != ')' {
				pointers = append(pointers, &o.Lines[0])
				step := steps[0]
				if steps = steps[1:]; step != '(' {
					stand.Must(t, recopied[step](tx, &o))
					continue
				}
				_ = tx.Transaction(func(tx *gorm.DB) error {
					steps = run(tx, steps)
					return errUndo
				})
				steps = steps[1:]
			}
			return steps
		}
		_ = db.Transaction(func(tx *gorm.DB) error {
			run(tx, []rune(program))
			return errUndo
		})
		for i, line := range append(pointers, &o.Lines[0]) {
			if row := stand.Row[stand.LinedLine](t, db, line.ID); line.Version > row.Version {
				t.Errorf("%s: pointer %d: %+v of %+v", program, i, *line, row)
			}
		}
	}
}

// What was read into another variable makes no copies unread that were there before.
func TestRollback_ofAListBesideAnAppend(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}})
	for _, program := range []string{"A", "Al", "lA", "pl", "AlA", "AAl", "plA", "Dl", "lD", "plD", "AlD", "pAlD", "clA", "clAA", "cAlA", "clD", "clAD"} {
		o := stand.LinedOrder{Lines: []stand.LinedLine{{}, {}, {}}}
		stand.MustDo(t, db.Create(&o))
		id := o.ID
		o = stand.LinedOrder{}
		stand.MustDo(t, db.Preload("Lines").First(&o, id))
		_ = db.Transaction(func(tx *gorm.DB) error {
			for _, step := range program {
				stand.Must(t, recopied[step](tx, &o))
			}
			return errUndo
		})
		o.Lines[0].Qty = 6
		if err := db.Save(&o.Lines[0]).Error; err != nil {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// Between copies, and after the commit, the lines are read.
func TestCommit_ofLinesThatAreCopiedAgain(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}})
	for _, program := range []string{"kAkDk", "kDkAk", "FDkAkRk", "AAkDDk", "kRkRk", "pkDkpk", "rkAkDkrk", "lkAlkDlk", "Ask", "kAsk", "Axk", "kAxk", "kAskDsk", "AskAxk"} {
		o := stand.LinedOrder{Lines: []stand.LinedLine{{}, {}, {}, {}}}
		stand.MustDo(t, db.Create(&o))
		if err := db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Save(&o)) // so that it is known
			for _, step := range program {
				if err := recopied[step](tx, &o); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", program, err)
		}
		for i := range o.Lines {
			if err := db.Save(&o.Lines[i]).Error; err != nil {
				t.Errorf("%s: %v", program, err)
			}
		}
	}
}

// Where an order holds a line twice, as it was and as it is, each keeps its own version: nothing makes the older one look fresh.
func TestAppend_besideAnOlderStructOfTheRow(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}})
	for _, program := range []string{"", "A", "AA", "D", "AD", "sA", "c", "cA", "0", "0A", "0AA", "0cA"} {
		for _, own := range []bool{false, true} {
			for _, end := range []error{nil, errUndo} {
				o := stand.LinedOrder{Lines: []stand.LinedLine{{Qty: 1}, {Qty: 2}, {Qty: 3}}}
				stand.MustDo(t, db.Create(&o))
				older := o.Lines[0]
				stand.MustDo(t, db.Model(&stand.LinedLine{}).Where("id = ?", older.ID).Update("qty", 10)) // a rival
				_ = db.Transaction(func(tx *gorm.DB) error {
					line := stand.Row[stand.LinedLine](t, tx, older.ID)
					if own {
						stand.MustDo(t, tx.Model(&line).Update("qty", 11))
					}
					if strings.HasPrefix(program, "0") {
						o.Lines[0].Version = 0 // as if it was not read
					}
					stand.Must(t, tx.Model(&o).Association("Lines").Append(&line))
					for _, step := range strings.TrimPrefix(program, "0") {
						stand.Must(t, recopied[step](tx, &o))
					}
					return end
				})
				for i := range o.Lines {
					held := o.Lines[i]
					if held.Qty != older.Qty || held.ID != older.ID {
						continue
					}
					if row := stand.Row[stand.LinedLine](t, db, held.ID); held.Version == row.Version {
						t.Errorf("%s, own %t, %v: %+v has the version of %+v", program, own, end, held, row)
					}
				}
			}
		}
	}
}

type copiedNode struct {
	ID       int64
	ParentID *int64
	Text     string
	Kids     []copiedNode `gorm:"foreignKey:ParentID"`
	Version  int64        `gorm:"not null;default:1" gormlock:"version"`
}

// In a tree, the children that Association(…).Delete leaves are read too, if their parent was written or appended to.
func TestAssociationDelete_inATree(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&copiedNode{}})
	for name, known := range map[string]func(tx *gorm.DB, n *copiedNode) error{
		"saved":       func(tx *gorm.DB, n *copiedNode) error { return tx.Save(n).Error },
		"appended to": func(tx *gorm.DB, n *copiedNode) error { return tx.Model(n).Association("Kids").Append(&copiedNode{}) },
	} {
		for _, end := range []error{nil, errUndo} {
			n := copiedNode{Kids: []copiedNode{{}, {}, {}}}
			stand.MustDo(t, db.Create(&n))
			ended := db.Transaction(func(tx *gorm.DB) error {
				n.Kids[0].Text = "mine"
				stand.MustDo(t, tx.Save(&n.Kids[0]))
				stand.Must(t, known(tx, &n))
				stand.Must(t, tx.Model(&n).Association("Kids").Delete(&copiedNode{ID: n.Kids[1].ID}))
				return end
			})
			if !errors.Is(ended, end) {
				t.Error(name, ended)
			}
			row := stand.Row[copiedNode](t, db, n.Kids[0].ID)
			stand.Equal(t, name+": the version of the one that stays", n.Kids[0].Version, row.Version)
		}
	}
}
