package roots_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// twig is the root of other twigs.
type twig struct {
	ID       int64
	A, B     int64
	Note     string `gormlock:"unversioned"`
	ParentID *int64
	Parent   *twig `gormlock:"root"`
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A statement may name a root beside its part and yet not write the root's row, or not move its version. Then the root moves because of the part,
// and so do the roots above. A root that the statement itself writes moves once.
func TestRoot_thatTheStatementNames(t *testing.T) {
	t.Parallel()
	type named struct{ top, root, other, child *twig }
	both := func(n named) []*twig { return []*twig{n.root, n.child} }
	only := func(condition string) clause.OnConflict {
		return clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"b"}), Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: condition}}}}
	}
	for name, c := range map[string]struct {
		write     func(tx *gorm.DB, n named) error
		unwritten bool // no part is written
	}{
		"upsert that does nothing": {write: func(tx *gorm.DB, n named) error {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create([]*twig{{ID: n.root.ID}, {ParentID: &n.root.ID}}).Error
		}},
		"upsert that does nothing, beside the root's root": {write: func(tx *gorm.DB, n named) error {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create([]*twig{n.top, n.root, {ParentID: &n.root.ID}}).Error
		}},
		"upsert that does nothing, of all": {unwritten: true, write: func(tx *gorm.DB, n named) error {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create([]*twig{{ID: n.root.ID}, {ID: n.child.ID, ParentID: &n.root.ID}}).Error
		}},
		"upsert with a condition": {write: func(tx *gorm.DB, n named) error {
			return tx.Clauses(only("twigs.a = 2")).Create(both(n)).Error
		}},
		"upsert with a condition of both": {write: func(tx *gorm.DB, n named) error {
			return tx.Clauses(only("twigs.a > 0")).Create(both(n)).Error
		}},
		"upsert with a condition of none": {unwritten: true, write: func(tx *gorm.DB, n named) error {
			return tx.Clauses(only("twigs.a > 5")).Create(both(n)).Error
		}},
		"upsert": {write: func(tx *gorm.DB, n named) error {
			return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(both(n)).Error
		}},
		"upsert of an unversioned column": {write: func(tx *gorm.DB, n named) error {
			return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"note"})}).Create(both(n)).Error
		}},
		"update with a condition": {write: func(tx *gorm.DB, n named) error {
			return tx.Model(both(n)).Where("a = 2").Update("b", 5).Error
		}},
		"update with a condition of both": {write: func(tx *gorm.DB, n named) error {
			return tx.Model(both(n)).Where("a > 0").Update("b", 5).Error
		}},
		"update with a condition of none": {unwritten: true, write: func(tx *gorm.DB, n named) error {
			return tx.Model(both(n)).Where("a > 5").Update("b", 5).Error
		}},
		"update": {write: func(tx *gorm.DB, n named) error {
			return tx.Model(both(n)).Update("b", 5).Error
		}},
		"update of all three": {write: func(tx *gorm.DB, n named) error {
			return tx.Model([]*twig{n.top, n.root, n.child}).Update("b", 5).Error
		}},
		"update of the child and the root's root, of which a condition leaves the latter": {write: func(tx *gorm.DB, n named) error {
			return tx.Model([]*twig{n.top, n.child}).Where("a = 2").Update("b", 5).Error
		}},
		"update of an unversioned column": {write: func(tx *gorm.DB, n named) error {
			return tx.Model(both(n)).Update("note", "x").Error
		}},
		"update of an unversioned column in a map": {write: func(tx *gorm.DB, n named) error {
			return tx.Model(both(n)).Updates(map[string]any{"note": "x"}).Error
		}},
		"form with the root's key": {write: func(tx *gorm.DB, n named) error {
			return tx.Model(n.child).Omit("ID").Updates(twig{ID: n.root.ID, B: 5}).Error
		}},
		"pointer to a form with the root's key": {write: func(tx *gorm.DB, n named) error {
			return tx.Model(n.child).Omit("ID").Updates(&twig{ID: n.root.ID, B: 5}).Error
		}},
		"Save": {write: func(tx *gorm.DB, n named) error {
			n.root.B, n.child.B = 5, 5
			return tx.Save(both(n)).Error
		}},
		"Save of the child, with its root": {write: func(tx *gorm.DB, n named) error {
			n.child.B, n.child.Parent = 5, n.root
			return tx.Save(n.child).Error
		}},
		"Save of both, with the root": {write: func(tx *gorm.DB, n named) error {
			n.child.B, n.child.Parent = 5, n.root
			return tx.Save(both(n)).Error
		}},
		"delete with a condition": {write: func(tx *gorm.DB, n named) error {
			return tx.Where("a = 2").Delete(both(n)).Error
		}},
		"insert beside": {write: func(tx *gorm.DB, n named) error {
			return tx.Create([]*twig{{ID: 1000 + n.root.ID}, {ParentID: &n.root.ID}}).Error
		}},
		"in a transaction that has written the root": {write: func(tx *gorm.DB, n named) error {
			return tx.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Model(n.root).Update("b", 6).Error)
				return tx.Model(both(n)).Where("a = 2").Update("b", 5).Error
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnEachAndMySQL(t, []any{&twig{}}, func(t *testing.T, db *gorm.DB) {
				if db.Name() == "mysql" && strings.HasPrefix(name, "upsert with a condition") {
					t.Skip("MySQL has no condition in an upsert")
				}
				if strings.HasSuffix(t.Name(), "delete_with_a_condition/mariadb_like_MySQL") {
					t.Skip("such a server does not say which of the rows it has deleted, so the statement is refused")
				}
				for _, in := range []string{"implicit", "explicit"} {
					top := stand.Made(t, db, twig{A: 1})
					root := stand.Made(t, db, twig{A: 1, ParentID: &top.ID})
					other := stand.Made(t, db, twig{A: 3})
					child := stand.Made(t, db, twig{A: 2, ParentID: &root.ID})
					for _, one := range []*twig{&top, &root, &other, &child} {
						stand.Must(t, db.First(one, one.ID).Error)
					}
					was := [2]int64{top.Version, root.Version}
					stand.Must(t, stand.Begin[in](db, func(tx *gorm.DB) error { return c.write(tx, named{&top, &root, &other, &child}) }))
					want := [2]int64{was[0] + 1, was[1] + 1}
					if c.unwritten {
						want = was
					}
					stand.Equal(t, in+": the versions of the roots", [2]int64{stand.Row[twig](t, db, top.ID).Version, stand.Row[twig](t, db, root.ID).Version}, want)
					if !c.unwritten && !strings.Contains(name, "form") && name != "upsert that does nothing" && !strings.HasPrefix(name, "Save of the child") && !strings.Contains(name, "root's root") && name != "insert beside" {
						root.Note = "again"
						stand.Must(t, db.Select("Note").Save(&root).Error)
					}
					if strings.HasSuffix(name, "beside the root's root") && db.Name() != "mysql" { // there such structs count as not read
						stand.Must(t, db.Select("Note").Save(&top).Error)
					}
				}
			})
		})
	}
}

// Both are deleted, so no version moves and nothing is refused.
func TestRoot_thatIsDeletedWithItsPart(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&twig{}}, func(t *testing.T, db *gorm.DB) {
		for _, in := range []string{"implicit", "explicit"} {
			root := stand.Made(t, db, twig{A: 1})
			child := stand.Made(t, db, twig{A: 2, ParentID: &root.ID})
			stand.Must(t, db.First(&root, root.ID).Error)
			stand.Must(t, stand.Begin[in](db, func(tx *gorm.DB) error {
				return tx.Clauses(gormlock.IgnoreVersion()).Delete([]*twig{&root, &child}).Error
			}))
			var left int64
			stand.Must(t, db.Model(&twig{}).Where("id IN ?", []int64{root.ID, child.ID}).Count(&left).Error)
			stand.Equal(t, "left", left, 0)
		}
	})
}
