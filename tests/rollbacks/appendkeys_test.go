package rollbacks_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A mover holds by value children that may come from nobody, or from another mover.
type (
	pointedMover struct {
		ID      int64
		Text    string
		Lines   []pointedLine `gorm:"foreignKey:OfID"`
		Version int64         `gorm:"not null;default:1" gormlock:"version"`
	}
	pointedLine struct {
		ID      int64
		OfID    *int64
		Text    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	plainMover struct {
		ID      int64
		Text    string
		Lines   []plainLine `gorm:"foreignKey:OfID;constraint:-"`
		Version int64       `gorm:"not null;default:1" gormlock:"version"`
	}
	plainLine struct {
		ID, OfID int64
		Text     string
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	anyMover struct {
		ID      int64
		Text    string
		Lines   []anyLine `gorm:"polymorphic:Of"`
		Version int64     `gorm:"not null;default:1" gormlock:"version"`
	}
	anyLine struct {
		ID      int64
		OfID    *int64
		OfType  string
		Text    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	nestedMover struct {
		ID      int64
		Text    string
		Lines   []nestedLine `gorm:"foreignKey:OfID;constraint:-"`
		Version int64        `gorm:"not null;default:1" gormlock:"version"`
	}
	nestedLine struct {
		ID int64
		*MoverLink
		Text    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// MoverLink is what a nestedLine has behind a pointer.
type MoverLink struct{ OfID int64 }

// A deskUser holds the tasks of a row in two associations.
type (
	deskUser struct {
		ID       int64
		Assigned []deskTask `gorm:"foreignKey:AssigneeID"`
		Reported []deskTask `gorm:"foreignKey:ReporterID"`
		Version  int64      `gorm:"not null;default:1" gormlock:"version"`
	}
	deskTask struct {
		ID                     int64
		Title                  string
		AssigneeID, ReporterID *int64
		Version                int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// An Append moves the version of the struct that it moves, and of no other struct of the row that the parent holds.
func TestAppend_besideAnotherAssociationOfTheParent(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&deskUser{}, &deskTask{}})
	for name, call := range map[string]func(a *gorm.Association, task *deskTask) error{
		"Append":  func(a *gorm.Association, task *deskTask) error { return a.Append(task) },
		"Replace": func(a *gorm.Association, task *deskTask) error { return a.Replace(task) },
	} {
		made := deskUser{Reported: []deskTask{{Title: "a"}}}
		stand.MustDo(t, db.Create(&made))
		var u deskUser
		stand.MustDo(t, db.Preload("Assigned").Preload("Reported").First(&u, made.ID))
		task := stand.Row[deskTask](t, db, u.Reported[0].ID)
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return call(tx.Model(&u).Association("Assigned"), &task) }))
		u.Reported[0].Title = "triaged"
		err := db.Save(&u.Reported[0]).Error
		if row := stand.Row[deskTask](t, db, task.ID); row.AssigneeID == nil {
			t.Errorf("%s: the assignment is lost, and Save says %v", name, err)
		}
		u.Assigned[0].Title = "taken"
		stand.MustDo(t, db.Save(&u.Assigned[0]))
	}
}

// A rollback gives the children that a parent holds back their foreign keys, whatever slice they are in by then. After a commit none of them has
// the version of its row and another key, nor has what was given.
func TestRollback_ofAppendsRestoresForeignKeys(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&pointedMover{}, &pointedLine{}, &plainMover{}, &plainLine{}, &anyMover{}, &anyLine{}, &nestedMover{}, &nestedLine{}})
	t.Run("pointer", func(t *testing.T) { movesAndRollsBack[pointedMover, pointedLine](t, db) })
	t.Run("number", func(t *testing.T) { movesAndRollsBack[plainMover, plainLine](t, db) })
	t.Run("polymorphic", func(t *testing.T) { movesAndRollsBack[anyMover, anyLine](t, db) })
	t.Run("behind a pointer", func(t *testing.T) { movesAndRollsBack[nestedMover, nestedLine](t, db) })
}

var errMovedBack = errors.New("back")

// moves are what a transaction does with two lines.
func moves[M, L any]() map[string]func(tx *gorm.DB, m *M, one, two *L) error {
	lines := func(tx *gorm.DB, m *M) *gorm.Association { return tx.Model(m).Association("Lines") }
	then := func(first func(tx *gorm.DB, m *M, one, two *L) error, next ...func(tx *gorm.DB, m *M) error) func(tx *gorm.DB, m *M, one, two *L) error {
		return func(tx *gorm.DB, m *M, one, two *L) error {
			err := first(tx, m, one, two)
			for _, do := range next {
				err = errors.Join(err, do(tx, m))
			}
			return err
		}
	}
	appendOne := func(tx *gorm.DB, m *M, one, _ *L) error { return lines(tx, m).Append(one) }
	appendBoth := func(tx *gorm.DB, m *M, one, two *L) error { return lines(tx, m).Append(one, two) }
	appendNew := func(tx *gorm.DB, m *M) error { return lines(tx, m).Append(new(L)) }
	nested := func(tx *gorm.DB, m *M) error {
		if err := tx.Transaction(func(tx *gorm.DB) error { return errors.Join(appendNew(tx, m), errMovedBack) }); !errors.Is(err, errMovedBack) {
			return err
		}
		return nil
	}
	return map[string]func(tx *gorm.DB, m *M, one, two *L) error{
		"one":             appendOne,
		"one, a new one":  then(appendOne, appendNew),
		"one, new ones":   then(appendOne, appendNew, func(tx *gorm.DB, m *M) error { return lines(tx, m).Append(new(L), new(L)) }),
		"both":            appendBoth,
		"both, a new one": then(appendBoth, appendNew),
		"one by one": func(tx *gorm.DB, m *M, one, two *L) error {
			return errors.Join(lines(tx, m).Append(one), lines(tx, m).Append(two))
		},
		"the owner":        then(appendOne, func(tx *gorm.DB, m *M) error { return tx.Model(m).Update("text", "x").Error }),
		"the owner, saved": then(appendOne, func(tx *gorm.DB, m *M) error { return tx.Save(m).Error }),
		"the owner, read":  then(appendOne, func(tx *gorm.DB, m *M) error { return tx.First(m).Error }, appendNew),
		"a nested part":    then(appendOne, nested, appendNew),
		"nested": func(tx *gorm.DB, m *M, one, two *L) error {
			err := tx.Transaction(func(tx *gorm.DB) error {
				return errors.Join(appendOne(tx, m, one, two), appendNew(tx, m), errMovedBack)
			})
			if !errors.Is(err, errMovedBack) {
				return err
			}
			return appendNew(tx, m)
		},
		"Replace":            func(tx *gorm.DB, m *M, one, _ *L) error { return lines(tx, m).Replace(one) },
		"Replace, a new one": then(func(tx *gorm.DB, m *M, one, _ *L) error { return lines(tx, m).Replace(one) }, appendNew),
		"both, Delete of one": func(tx *gorm.DB, m *M, one, two *L) error {
			return errors.Join(appendBoth(tx, m, one, two), lines(tx, m).Delete(two))
		},
	}
}

func movesAndRollsBack[M, L any](t *testing.T, db *gorm.DB) {
	t.Helper()
	for _, from := range []string{"nobody", "another"} {
		for _, read := range []string{"before", "inside"} {
			for name, move := range moves[M, L]() {
				for _, back := range []bool{false, true} {
					call := fmt.Sprintf("%s, from %s, read %s, rolled back %v", name, from, read, back)
					another, m, one, two := *new(M), *new(M), *new(L), *new(L)
					stand.MustDo(t, db.Create(&another))
					stand.MustDo(t, db.Create(&m))
					for _, line := range []*L{&one, &two} {
						if from == "another" {
							stand.Must(t, db.Model(&another).Association("Lines").Append(line))
						} else {
							stand.MustDo(t, db.Create(line))
						}
					}
					ids := []any{factOf(&one, "ID"), factOf(&two, "ID")}
					one, two = stand.Row[L](t, db, ids[0]), stand.Row[L](t, db, ids[1])
					err := db.Transaction(func(tx *gorm.DB) error {
						if read == "inside" {
							one, two = stand.Row[L](t, tx, ids[0]), stand.Row[L](t, tx, ids[1])
						}
						err := move(tx, &m, &one, &two)
						if err == nil && back {
							return errMovedBack
						}
						return err
					})
					if err != nil && (!back || !errors.Is(err, errMovedBack)) {
						t.Errorf("%s: %v", call, err)
					}
					if !back { // no rollback reaches what was given
						isAsItsRow(t, db, call+": the first that was given", &one)
						isAsItsRow(t, db, call+": the second that was given", &two)
					}
					held := reflect.ValueOf(&m).Elem().FieldByName("Lines")
					for i := range held.Len() {
						isAsItsRow(t, db, fmt.Sprint(call, ": ", i), held.Index(i).Addr().Interface().(*L))
					}
				}
			}
		}
	}
}

// isAsItsRow fails where a struct has the version of its row and another foreign key.
func isAsItsRow[L any](t *testing.T, db *gorm.DB, what string, line *L) {
	t.Helper()
	var row L
	found := db.Where("id = ?", factOf(line, "ID")).Limit(1).Find(&row)
	stand.Must(t, found.Error)
	if found.RowsAffected == 0 || factOf(&row, "Version") != factOf(line, "Version") {
		return
	}
	stand.Equal(t, what, fmt.Sprint(factOf(line, "OfID")), fmt.Sprint(factOf(&row, "OfID")))
}

// factOf is what a struct has in a field, or behind the pointer there: nil if that is 0, or NULL.
func factOf(row any, field string) any {
	v := reflect.ValueOf(row).Elem()
	if link := v.FieldByName("MoverLink"); link.IsValid() && link.IsNil() && field == "OfID" {
		return nil
	}
	v = reflect.Indirect(v.FieldByName(field))
	if !v.IsValid() || v.IsZero() {
		return nil
	}
	return v.Interface()
}

// Right behind an Append, before any other statement, both what was given and what the parent holds have the new foreign key, as in GORM.
func TestAppend_showsTheForeignKeyAtOnce(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&plainMover{}, &plainLine{}})
	another, m := plainMover{Lines: []plainLine{{Text: "a"}}}, plainMover{}
	stand.MustDo(t, db.Create(&another))
	stand.MustDo(t, db.Create(&m))
	line := stand.Row[plainLine](t, db, another.Lines[0].ID)
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.Must(t, tx.Model(&m).Association("Lines").Append(&line))
		stand.Equal(t, "the key that was given", line.OfID, m.ID)
		stand.Equal(t, "the key in the parent", m.Lines[0].OfID, m.ID)
	})
}

// An Append that fails gives each struct the key back that it had itself: another struct of the same row may have been read later.
func TestAppend_undoesEachStructsOwnKey(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&plainMover{}, &plainLine{}})
	for name, call := range map[string]func(tx *gorm.DB, m *plainMover, line *plainLine) error{
		"Append": func(tx *gorm.DB, m *plainMover, line *plainLine) error {
			return tx.Model(m).Association("Lines").Append(line)
		},
		"Save": func(tx *gorm.DB, m *plainMover, line *plainLine) error {
			m.Lines = append(m.Lines, *line)
			return tx.Save(m).Error
		},
	} {
		first, rivals, m := plainMover{Lines: []plainLine{{Text: "a"}}}, plainMover{}, plainMover{}
		for _, one := range []*plainMover{&first, &rivals, &m} {
			stand.MustDo(t, db.Create(one))
		}
		id := first.Lines[0].ID
		stale := stand.Row[plainLine](t, db, id)
		stand.MustDo(t, db.Model(&plainLine{}).Where("id = ?", id).Update("of_id", rivals.ID))
		if err := call(db, &m, &stale); err == nil {
			t.Errorf("%s of a stale line: no error", name)
		}
		fresh := stand.Row[plainLine](t, db, id)
		if err := call(db, &m, &fresh); err == nil {
			t.Errorf("%s beside a stale line: no error", name)
		}
		isAsItsRow(t, db, name+": the fresh line", &fresh)
		for i := range m.Lines {
			isAsItsRow(t, db, name+": a line of the parent", &m.Lines[i])
		}
	}
}

// A parent holds a fresh line, and a stale struct of the same row is appended. After the rollback the fresh line has its own key.
func TestRollback_leavesAFreshStructAlone(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&plainMover{}, &plainLine{}})
	first, m := plainMover{Lines: []plainLine{{Text: "a"}}}, plainMover{}
	stand.MustDo(t, db.Create(&first))
	stand.MustDo(t, db.Create(&m))
	stale := stand.Row[plainLine](t, db, first.Lines[0].ID)
	stand.MustDo(t, db.Model(&plainLine{}).Where("id = ?", stale.ID).Update("of_id", m.ID))
	m = plainMover{ID: m.ID}
	stand.MustDo(t, db.Preload("Lines").First(&m))
	err := db.Transaction(func(tx *gorm.DB) error {
		_ = tx.Model(&m).Association("Lines").Append(&stale)
		return errMovedBack
	})
	if err == nil {
		t.Error("it was committed")
	}
	for i := range m.Lines {
		isAsItsRow(t, db, fmt.Sprint("line ", i, " of the parent"), &m.Lines[i])
	}
	stand.Equal(t, "the version that the parent had read", m.Lines[0].Version, 2)
}
