package fences_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	shelf struct {
		ID      int64
		Name    string
		RoomID  *int64
		Room    *shelfRoom
		Books   []shelfBook
		Lamp    *shelfLamp
		Themes  []shelfTheme `gorm:"many2many:shelf_themes_joined"`
		Fence   int64        `gorm:"not null;default:0" gormlock:"fence"`
		Version int64        `gorm:"not null;default:1" gormlock:"version"`
	}
	shelfRoom struct{ ID int64 }
	shelfBook struct {
		ID      int64
		Name    string
		ShelfID *int64
		Fence   int64 `gorm:"not null;default:0" gormlock:"fence"`
	}
	shelfLamp struct {
		ID      int64
		ShelfID *int64
		Fence   int64 `gorm:"not null;default:0" gormlock:"fence"`
	}
	shelfTheme struct {
		ID    int64
		Name  string
		Fence int64 `gorm:"not null;default:0" gormlock:"fence"`
	}
	shelfThemesJoined struct {
		ShelfID, ShelfThemeID int64 `gorm:"primaryKey"`
		Fence                 int64 `gorm:"not null;default:0" gormlock:"fence"`
	}
	shelfLabel struct {
		ID      int64
		Text    string
		ShelfID *int64
		Shelf   *shelf `gormlock:"root"`
		Fence   int64  `gorm:"not null;default:0" gormlock:"fence,key=label"`
	}
)

func (shelfThemesJoined) TableName() string { return "shelf_themes_joined" }

func shelves(t *testing.T) (db *gorm.DB, token fence.Token) {
	db = stand.Open(t, pgtest.Config(func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }))
	stand.Must(t, db.SetupJoinTable(&shelf{}, "Themes", &shelfThemesJoined{}))
	stand.Must(t, db.AutoMigrate(&shelfRoom{}, &shelf{}, &shelfBook{}, &shelfLamp{}, &shelfTheme{}, &shelfThemesJoined{}, &shelfLabel{}))
	stand.MigrateFence(t, db)
	return db, stand.Issue(t, db, "label", 1)
}

// A fence without a key takes no token from a statement of another model: it may be the token of another lock.
func TestBareFence_takesNoTokenFromOthers(t *testing.T) {
	t.Parallel()
	db, token := shelves(t)
	tx := stand.With(db, token)
	one := func() *shelf { return &shelf{ID: 1, Version: 1} }
	set := func(name string, to clause.Association) error {
		to.Association = name
		_, err := gorm.G[shelf](db).Where("id = 1").Set(to).Update(tx.Statement.Context)
		return err
	}
	rename := clause.Association{Type: clause.OpUpdate, Set: []clause.Assignment{{Column: clause.Column{Name: "name"}, Value: "x"}}}
	for name, write := range map[string]func() error{
		"create of a part":           func() error { return tx.Create(&shelfLabel{ShelfID: one1()}).Error },
		"update of a part":           func() error { return tx.Model(&shelfLabel{ID: 1}).Update("text", "x").Error },
		"delete of a part":           func() error { return tx.Delete(&shelfLabel{ID: 1}).Error },
		"update of parts":            func() error { return tx.Model(&shelfLabel{}).Where("true").Update("text", "x").Error },
		"Clear":                      func() error { return tx.Model(one()).Association("Books").Clear() },
		"Clear, unscoped":            func() error { return tx.Model(one()).Association("Books").Unscoped().Clear() },
		"Replace":                    func() error { return tx.Model(one()).Association("Books").Replace([]shelfBook{}) },
		"Delete":                     func() error { return tx.Model(one()).Association("Books").Delete(&shelfBook{ID: 1}) },
		"Delete, unscoped":           func() error { return tx.Model(one()).Association("Books").Unscoped().Delete(&shelfBook{ID: 1}) },
		"Append":                     func() error { return tx.Model(one()).Association("Books").Append(&shelfBook{Name: "x"}) },
		"Clear of a has-one":         func() error { return tx.Model(one()).Association("Lamp").Clear() },
		"Delete of a has-one":        func() error { return tx.Model(one()).Association("Lamp").Delete(&shelfLamp{ID: 1}) },
		"Clear of a join table":      func() error { return tx.Model(one()).Association("Themes").Clear() },
		"Delete from a join table":   func() error { return tx.Model(one()).Association("Themes").Delete(&shelfTheme{ID: 1}) },
		"Append to a join table":     func() error { return tx.Model(one()).Omit("Themes.*").Association("Themes").Append(&shelfTheme{ID: 2}) },
		"Select and Delete":          func() error { return tx.Select("Books").Delete(one()).Error },
		"Select and Delete, joined":  func() error { return tx.Select("Themes").Delete(one()).Error },
		"gorm.G, update":             func() error { return set("Books", rename) },
		"gorm.G, unlink":             func() error { return set("Books", clause.Association{Type: clause.OpUnlink}) },
		"gorm.G, delete":             func() error { return set("Books", clause.Association{Type: clause.OpDelete}) },
		"Save of a parent":           func() error { return tx.Save(&shelf{ID: 1, Version: 1, Books: []shelfBook{{Name: "x"}}}).Error },
		"a Fence clause, and no key": func() error { return db.Clauses(gormlock.Fence(token)).Model(one()).Association("Books").Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			for _, query := range []string{
				"TRUNCATE shelves, shelf_books, shelf_lamps, shelf_themes, shelf_themes_joined, shelf_labels",
				"INSERT INTO shelves (id, name) VALUES (1, 'old')", "INSERT INTO shelf_books (id, name, shelf_id) VALUES (1, 'old', 1), (2, 'old', 1)",
				"INSERT INTO shelf_lamps (id, shelf_id) VALUES (1, 1)", "INSERT INTO shelf_themes (id, name) VALUES (1, 'old')",
				"INSERT INTO shelf_themes_joined VALUES (1, 1)", "INSERT INTO shelf_labels (id, shelf_id) VALUES (1, 1)",
			} {
				stand.Must(t, db.Exec(query).Error)
			}
			if err := write(); !errors.Is(err, gormlock.ErrFenceMissing) {
				t.Error(err)
			}
			var left int64
			stand.Must(t, db.Raw("SELECT (SELECT count(*) FROM shelf_books WHERE name='old' AND shelf_id=1) + (SELECT count(*) FROM shelf_lamps WHERE shelf_id=1) + "+
				"(SELECT count(*) FROM shelf_themes WHERE name='old') + (SELECT count(*) FROM shelf_themes_joined) + (SELECT count(*) FROM shelves WHERE version=1)").Scan(&left).Error)
			stand.Equal(t, "rows as before", left, 6)
		})
	}
}

func one1() *int64 {
	id := int64(1)
	return &id
}

// What a model writes of its own takes the token, whatever makes the statement.
func TestBareFence_takesTheTokenOfItsOwn(t *testing.T) {
	t.Parallel()
	db, token := shelves(t)
	tx := stand.With(db, token)
	stand.Must(t, db.Create(&[]shelfRoom{{ID: 1}, {ID: 2}}).Error)
	s := shelf{Room: &shelfRoom{ID: 1}}
	stand.Must(t, tx.Create(&s).Error)
	room := tx.Model(&s).Association("Room")
	stand.Must(t, room.Append(&shelfRoom{ID: 2}))
	stand.Must(t, room.Delete(&shelfRoom{ID: 2}))
	stand.Must(t, db.First(&s, s.ID).Error)
	stand.Must(t, room.Append(&shelfRoom{ID: 1}))
	stand.Must(t, room.Clear())
	stand.Must(t, tx.Model(&s).Update("name", "x").Error)
	stand.Must(t, tx.Model(&shelf{}).Where("id IN (?)", tx.Model(&shelf{}).Select("id")).Update("name", "y").Error)
	_, err := gorm.G[shelf](db).Where("id = ?", s.ID).Update(tx.Statement.Context, "room_id", nil)
	stand.Must(t, err)
	stand.Must(t, db.First(&s, s.ID).Error)
	stand.Must(t, db.Transaction(func(db *gorm.DB) error { // a root that is touched with its own token has moved
		tx := stand.With(db, token)
		stand.Must(t, gormlock.Touch(tx, &s))
		return tx.Omit(clause.Associations).Create(&shelfLabel{ShelfID: &s.ID, Shelf: &s}).Error
	}))
	stand.Must(t, tx.Model(&s).Clauses(clause.Returning{}).Update("name", "z").Error)
	stand.Must(t, tx.Where("shelf_id = ?", s.ID).Delete(&shelfBook{}).Error)
	stand.Must(t, tx.Delete(&s).Error)
}
