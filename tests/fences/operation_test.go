package fences_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// crate is fenced, and what it holds is not.
type (
	crate struct {
		ID     int64
		Name   string
		MainID *int64
		Main   *crateKid   `gorm:"foreignKey:MainID"`
		Kids   []crateKid  `gorm:"foreignKey:CrateID"`
		One    *crateKid   `gorm:"foreignKey:OneOf"`
		Notes  []crateNote `gorm:"polymorphic:Of"`
		Tags   []crateNote `gorm:"many2many:crate_tags"`
		Fence  int64       `gorm:"not null;default:0" gormlock:"fence,key=crate"`
	}
	crateKid struct {
		ID      int64
		Name    string
		CrateID *int64
		OneOf   *int64
	}
	crateNote struct {
		ID     int64
		Name   string
		OfID   *int64
		OfType *string
	}
)

// A holder that was superseded takes nothing from its owner with gorm.G, as with Association(…).
func TestOperation_ofASupersededHolder(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, nil)
	db.DisableForeignKeyConstraintWhenMigrating = true
	stand.Must(t, db.AutoMigrate(&crateKid{}, &crateNote{}, &crate{}))
	late := stand.Issue(t, db, "crate", 1)
	now := stand.Issue(t, db, "crate", 1)
	const all = `SELECT concat((SELECT string_agg(c::text, ' ') FROM crates c), (SELECT string_agg(k::text, ' ' ORDER BY id) FROM crate_kids k),
		(SELECT string_agg(n::text, ' ' ORDER BY id) FROM crate_notes n), (SELECT string_agg(c::text, ' ') FROM crate_tags c))`
	rows := func() (text string) {
		stand.Must(t, db.Raw(all).Scan(&text).Error)
		return text
	}
	for _, association := range []string{"Main", "Kids", "One", "Notes", "Tags"} {
		for kind, op := range map[string]clause.Association{
			"unlink": {Type: clause.OpUnlink}, "delete": {Type: clause.OpDelete},
			"update": {Type: clause.OpUpdate, Set: []clause.Assignment{{Column: clause.Column{Name: "name"}, Value: "set"}}},
		} {
			if association == "Main" && kind == "update" {
				continue // it writes no crate
			}
			for _, token := range []fence.Token{late, now} {
				stand.Must(t, db.Exec(`TRUNCATE crates, crate_kids, crate_notes, crate_tags; INSERT INTO crates (id, main_id) VALUES (1, 2);
					INSERT INTO crate_kids (id, crate_id, one_of) VALUES (1, 1, 1), (2, NULL, NULL); INSERT INTO crate_notes (id, of_id, of_type) VALUES (1, 1, 'crates'); INSERT INTO crate_tags VALUES (1, 1)`).Error)
				before := rows()
				op.Association, op.Conditions = association, nil
				if association == "Notes" {
					op.Conditions = []clause.Expression{clause.Eq{Column: "of_type", Value: "crates"}}
				}
				_, err := gorm.G[crate](db).Where("id = ?", 1).Set(op).Update(stand.With(db, token).Statement.Context)
				refused := association == "Tags" || association == "Main" && kind == "unlink" // to all
				switch {
				case token == late && err == nil, token == late && !refused && !errors.Is(err, gormlock.ErrFenced), token == now && refused != (err != nil):
					t.Errorf("%s, %s, of %s: %v", association, kind, token, err)
				case (rows() == before) != (err != nil):
					t.Errorf("%s, %s, of %s: %v, %s", association, kind, token, err, rows())
				}
			}
		}
	}
}
