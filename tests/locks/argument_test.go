package locks_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// What is asked on a db that GORM takes as an argument is an error, wherever GORM takes one: it would be dropped.
func TestAsked_onAnArgument(t *testing.T) {
	t.Parallel()
	type shelfBook struct {
		ID      int64
		ShelfID int64
		Title   string
	}
	type shelf struct {
		ID      int64
		Name    string
		Room    int64
		Version int64       `gorm:"not null;default:1" gormlock:"version"`
		Books   []shelfBook `gorm:"foreignKey:ShelfID"`
	}
	db := stand.Fenced(t, []any{&shelf{}, &shelfBook{}})
	stand.Must(t, db.Create(&shelf{ID: 1, Name: "a", Books: []shelfBook{{ID: 1, Title: "t"}}}).Error)
	key := pgtest.Key(t)
	n, _ := key.Int64()
	release := stand.NewRowRival(t).Hold("SELECT pg_advisory_xact_lock($1)", n)
	defer release()
	read := stand.Row[shelf](t, db, 1)
	token := stand.Issue(t, db, "shelf")

	session := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{}) }
	type asked struct {
		clause clause.Expression
		scope  func(*gorm.DB) *gorm.DB
	}
	own := func(ask clause.Expression) asked {
		return asked{ask, func(db *gorm.DB) *gorm.DB { return db.Clauses(ask) }}
	}
	asks := map[string]asked{
		"XactLock":      {gormlock.XactLock(key, gormlock.Try()), gormlock.WithXactLock(key, gormlock.Try())},
		"no lock":       {gormlock.XactLock(gormlock.Key()), gormlock.WithXactLock(gormlock.Key())},
		"RowLock":       {gormlock.RowLock(gormlock.ForUpdate), gormlock.WithRowLock(gormlock.ForUpdate)},
		"SkipLocked":    {gormlock.SkipLocked(), gormlock.WithSkipLocked()},
		"ExpectVersion": own(gormlock.ExpectVersion(7)),
		"IfUnchanged":   own(gormlock.IfUnchanged(&read, "Name")),
		"Fence":         own(gormlock.Fence(token)),
	}
	ways := map[string]func(tx *gorm.DB, ask asked) *gorm.DB{
		"Clauses":            func(tx *gorm.DB, ask asked) *gorm.DB { return tx.Clauses(ask.clause) },
		"Clauses, Where":     func(tx *gorm.DB, ask asked) *gorm.DB { return tx.Clauses(ask.clause).Where("id > 0") },
		"Clauses, a session": func(tx *gorm.DB, ask asked) *gorm.DB { return session(tx.Clauses(ask.clause).Where("id > 0")) },
		"Clauses, Locking": func(tx *gorm.DB, ask asked) *gorm.DB {
			return tx.Clauses(ask.clause, clause.Locking{Strength: "UPDATE"})
		},
		"Scopes":            func(tx *gorm.DB, ask asked) *gorm.DB { return tx.Scopes(ask.scope) },
		"Scopes, Where":     func(tx *gorm.DB, ask asked) *gorm.DB { return tx.Scopes(ask.scope).Where("id > 0") },
		"Scopes, a session": func(tx *gorm.DB, ask asked) *gorm.DB { return session(tx.Scopes(ask.scope)) },
		"Scopes, Where, a session": func(tx *gorm.DB, ask asked) *gorm.DB {
			return session(tx.Scopes(ask.scope).Where("id > 0"))
		},
		"Scopes, Locking": func(tx *gorm.DB, ask asked) *gorm.DB {
			return tx.Scopes(ask.scope).Clauses(clause.Locking{Strength: "UPDATE"})
		},
		"Scopes, a struct":  func(tx *gorm.DB, ask asked) *gorm.DB { return tx.Scopes(ask.scope).Where(&shelf{Room: 4}) },
		"Clauses, a struct": func(tx *gorm.DB, ask asked) *gorm.DB { return tx.Clauses(ask.clause).Where(&shelf{Room: 4}) },
	}
	places := map[string]func(tx, part *gorm.DB) error{
		"Where": func(tx, part *gorm.DB) error { return tx.Where(part).Find(&[]shelf{}).Error },
		"Or":    func(tx, part *gorm.DB) error { return tx.Where("id = 1").Or(part).Find(&[]shelf{}).Error },
		"Not":   func(tx, part *gorm.DB) error { return tx.Not(part).Find(&[]shelf{}).Error },
		"Having": func(tx, part *gorm.DB) error {
			return tx.Model(&shelf{}).Select("id").Group("id").Having(part).Find(&[]shelf{}).Error
		},
		"inline":           func(tx, part *gorm.DB) error { return tx.Find(&[]shelf{}, part).Error },
		"inline, First":    func(tx, part *gorm.DB) error { return tx.First(&shelf{}, part).Error },
		"inline, Delete":   func(tx, part *gorm.DB) error { return tx.Delete(&shelfBook{}, part).Error },
		"Preload":          func(tx, part *gorm.DB) error { return tx.Preload("Books", part).Find(&[]shelf{}).Error },
		"Preload, of none": func(tx, part *gorm.DB) error { return tx.Where("false").Preload("Books", part).Find(&[]shelf{}).Error },
		"Attrs": func(tx, part *gorm.DB) error {
			return tx.Where(&shelf{Name: "new"}).Attrs(part).FirstOrCreate(&shelf{}).Error
		},
		"Assign": func(tx, part *gorm.DB) error {
			return tx.Where(&shelf{Name: "new"}).Assign(part).FirstOrCreate(&shelf{}).Error
		},
		"Assign, found": func(tx, part *gorm.DB) error {
			return tx.Where(&shelf{Name: "a"}).Assign(part).FirstOrCreate(&shelf{}).Error
		},
		"Attrs, Init": func(tx, part *gorm.DB) error {
			return tx.Where(&shelf{Name: "new"}).Attrs(part).FirstOrInit(&shelf{}).Error
		},
		"Assign, Init": func(tx, part *gorm.DB) error {
			return tx.Where(&shelf{Name: "a"}).Assign(part).FirstOrInit(&shelf{}).Error
		},
		"Association": func(tx, part *gorm.DB) error {
			return tx.Model(&shelf{ID: 1}).Association("Books").Find(&[]shelfBook{}, part)
		},
		"of an Update": func(tx, part *gorm.DB) error { return tx.Model(&shelfBook{}).Where(part).Update("title", "u").Error },
		"of a Delete":  func(tx, part *gorm.DB) error { return tx.Where(part).Delete(&shelfBook{}).Error },
	}
	for name, ask := range asks {
		for way, part := range ways {
			for place, run := range places {
				var err error
				_ = db.Transaction(func(tx *gorm.DB) error {
					err = run(tx.Session(&gorm.Session{}), part(tx, ask))
					return errors.New("back")
				})
				compares := name != "Fence" || strings.HasPrefix(place, "of ") || strings.Contains(place, "Delete") || strings.HasPrefix(place, "A") && !strings.HasSuffix(place, "on")
				reaches := !strings.HasPrefix(way, "Scopes") || !strings.HasSuffix(way, "a session") || name != "ExpectVersion" && name != "IfUnchanged" && name != "Fence"
				if !compares || !reaches {
					continue
				}
				if err == nil {
					t.Errorf("%s, %s as %s: no error", name, way, place)
				}
				if err != nil && !strings.Contains(err.Error(), "gormlock: ") && !errors.Is(err, lockkey.ErrInvalid) {
					t.Errorf("%s, %s as %s: %v", name, way, place, err)
				}
			}
		}
	}
}
