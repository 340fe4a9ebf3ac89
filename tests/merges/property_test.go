package merges_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"pgregory.net/rapid"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// leaf is a row of random values: number, text, NULL, json, and an unversioned column.
type leaf struct {
	ID      int64
	N       int64
	S       string
	P       *string
	J       string `gorm:"type:jsonb"`
	U       int64  `gormlock:"unversioned"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// values are the columns of a leaf by their meaning.
type values [5]string

func valuesOf(l leaf) values {
	p := "NULL"
	if l.P != nil {
		p = "'" + *l.P + "'"
	}
	return values{fmt.Sprint(l.N), l.S, p, strings.ReplaceAll(l.J, " ", ""), fmt.Sprint(l.U)}
}

var leafColumns = [5]string{"n", "s", "p", "j", "u"}

// change draws new values for some columns.
func change(r *rapid.T, db *gorm.DB, who string, l *leaf) {
	few := rapid.IntRange(0, 2)
	for i := range leafColumns {
		if !rapid.Bool().Draw(r, who+" changes "+leafColumns[i]) {
			continue
		}
		n := few.Draw(r, who)
		switch i {
		case 0:
			l.N = int64(n)
		case 1:
			l.S = []string{"", "a", "A"}[n]
		case 2:
			l.P = []*string{nil, text(""), text("p")}[n]
		case 3:
			l.J = []string{`{"a":1}`, `{ "a": 1 }`, `[1, 2]`}[n]
			if db.Name() != "postgres" { // to which it is a text
				l.J = strings.ReplaceAll(l.J, " ", "")
			}
		case 4:
			l.U = int64(n)
		}
	}
}

// Random changes of both sides, compared with the definition of a three-way merge: of each column the side that changed it
// counts, and two sides that changed it to different values are a conflict.
func TestSaveMerged_asAModel(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&leaf{}}, func(t *testing.T, db *gorm.DB) {
		dbs := []*gorm.DB{db, db.Session(&gorm.Session{PrepareStmt: true}), db.Session(&gorm.Session{SkipDefaultTransaction: true})}
		rapid.Check(t, func(r *rapid.T) {
			db := rapid.SampledFrom(dbs).Draw(r, "db")
			base := leaf{J: `{"a":1}`}
			change(r, db, "base", &base)
			mustRapid(r, db.Create(&base).Error)
			theirs, mine := base, base
			change(r, db, "theirs", &theirs)
			if rapid.Bool().Draw(r, "they save") {
				mustRapid(r, db.Save(&theirs).Error)
			} else {
				theirs = base
			}
			change(r, db, "mine", &mine)
			was, rolledBack := mine, rapid.Bool().Draw(r, "rolled back")
			merge(r, db, rolledBack, &mine, base, theirs)

			var row leaf
			mustRapid(r, db.First(&row, base.ID).Error)
			switch want, conflicts := merged(base, was, theirs); {
			case rolledBack || len(conflicts) > 0:
				if valuesOf(mine) != valuesOf(was) || mine.Version != was.Version || valuesOf(row) != valuesOf(theirs) || row.Version != theirs.Version {
					r.Fatalf("mine is %v and was %v, the row is %v, theirs %v", mine, was, row, theirs)
				}
			case valuesOf(row) != want || valuesOf(mine) != want || mine.Version != row.Version:
				r.Fatalf("mine is %v, the row %v, want %v", valuesOf(mine), valuesOf(row), want)
			}
		})
	})
}

// merge saves mine, and compares the error with what is to be.
func merge(r *rapid.T, db *gorm.DB, rollBack bool, mine *leaf, base, theirs leaf) {
	_, want := merged(base, *mine, theirs)
	var err error
	if rollBack {
		tx := db.Begin()
		err = gormlock.SaveMerged(tx, mine, &base)
		mustRapid(r, tx.Rollback().Error)
	} else {
		err = gormlock.SaveMerged(db, mine, &base)
	}
	var conflict *gormlock.ConflictError
	var got []string
	if errors.As(err, &conflict) {
		for _, c := range conflict.Columns {
			got = append(got, c.Column)
		}
	} else {
		mustRapid(r, err)
	}
	if !slices.Equal(got, want) {
		r.Fatalf("the conflicts are %v, want %v", got, want)
	}
}

// merged is the definition.
func merged(base, mine, theirs leaf) (want values, conflicts []string) {
	b, m, th := valuesOf(base), valuesOf(mine), valuesOf(theirs)
	for i := range b {
		switch {
		case m[i] == b[i], m[i] == th[i]:
			want[i] = th[i]
		case th[i] == b[i]:
			want[i] = m[i]
		default:
			conflicts = append(conflicts, leafColumns[i])
		}
	}
	return want, conflicts
}

func mustRapid(r *rapid.T, err error) {
	if err != nil {
		r.Fatal(err)
	}
}

// Of many who edit different columns of one row at once none loses an edit.
func TestSaveMerged_manyAtOnce(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&leaf{}}, pgtest.MaxConns(8))
	base := leaf{J: `{}`}
	stand.Must(t, db.Create(&base).Error)
	const rounds = 25
	edits := []func(l *leaf, n int64){
		func(l *leaf, n int64) { l.N = n }, func(l *leaf, n int64) { l.S = fmt.Sprint(n) },
		func(l *leaf, n int64) { l.P = text(fmt.Sprint(n)) }, func(l *leaf, n int64) { l.J = fmt.Sprintf(`{"n": %d}`, n) },
	}
	done := make(chan error)
	for _, edit := range edits {
		go func() {
			mine := base // as of long ago: only the own column is as it is now
			var err error
			for n := int64(1); n <= rounds && err == nil; n++ {
				was := mine
				edit(&mine, n)
				err = gormlock.SaveMerged(db, &mine, &was)
			}
			done <- err
		}()
	}
	for range edits {
		stand.Must(t, <-done)
	}
	row := stand.Row[leaf](t, db, base.ID)
	if want := (values{"25", "25", "'25'", `{"n":25}`, "0"}); valuesOf(row) != want || row.Version != int64(len(edits))*rounds+1 {
		t.Errorf("the row is %+v, want %v", row, want)
	}
}
