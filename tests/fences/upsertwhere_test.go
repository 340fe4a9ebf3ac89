package fences_test

import (
	"testing"

	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type bulletin struct {
	ID    int64
	Body  string
	Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=bulletin"`
}

// A row that the Where of an upsert leaves out is not refused, whatever token it has.
func TestFencedUpsert_leavesOutByWhere(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&bulletin{}})
	first := stand.Issue(t, db, "bulletin", 1)
	stand.Issue(t, db, "bulletin", 2)
	later := stand.Issue(t, db, "bulletin", 2)
	stand.Must(t, db.Clauses(gormlock.Fence(first)).Create(&bulletin{ID: 1, Body: "open"}).Error)
	stand.Must(t, db.Clauses(gormlock.Fence(later)).Create(&bulletin{ID: 2, Body: "closed"}).Error)
	upsert := func(where string, id ...int64) error {
		rows := make([]bulletin, len(id))
		for i := range id {
			rows[i] = bulletin{ID: id[i], Body: "new"}
		}
		return db.Clauses(gormlock.Fence(first), clause.OnConflict{
			Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"body"}),
			Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: where}}},
		}).Create(&rows).Error
	}
	stand.Must(t, upsert("bulletins.body <> 'closed'", 1, 2))
	stand.Must(t, upsert("bulletins.body <> 'closed' OR bulletins.body IS NULL", 2))
	stand.Equal(t, "written", stand.Row[bulletin](t, db, 1).Body, "new")
	stand.Equal(t, "left out", stand.Row[bulletin](t, db, 2).Body, "closed")
	mustFenced(t, upsert("bulletins.body = 'closed'", 1, 2))
	mustFenced(t, upsert("bulletins.body <> 'x' OR bulletins.body IS NULL", 2))
	mustFenced(t, upsert("bulletins.body <> EXCLUDED.body", 2))
}
