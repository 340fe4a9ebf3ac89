package roots_test

import (
	"context"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// tenant is a column that hides the rows of others. No delete sets it.
type tenant int64

func (tenant) QueryClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{ofTenant{f}}
}

func (tenant) UpdateClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{ofTenant{f}}
}

func (tenant) DeleteClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{ofTenant{f}}
}

type ofTenant struct{ field *schema.Field }

func (ofTenant) Name() string               { return "" }
func (ofTenant) Build(clause.Builder)       {}
func (ofTenant) MergeClause(*clause.Clause) {}

func (o ofTenant) ModifyStatement(stmt *gorm.Statement) {
	if id, is := stmt.Context.Value(tenantKey{}).(tenant); is {
		stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: o.field.DBName}, Value: id}}})
	}
}

type tenantKey struct{}

type lease struct {
	ID      int64
	Of      tenant
	Title   string
	Rooms   []leaseRoom
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type leaseRoom struct {
	ID      int64
	Of      tenant
	LeaseID *int64
	Lease   *lease `gormlock:"root"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// TestRoot_ofATenant: a column that keeps rows out of queries, but that no delete sets, is no soft delete. A Save of the root moves its version
// once, and its struct has it.
func TestRoot_ofATenant(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&lease{}, &leaseRoom{}})
	db = db.WithContext(context.WithValue(t.Context(), tenantKey{}, tenant(1)))
	stand.Must(t, db.Create(&lease{Of: 1, Title: "a", Rooms: []leaseRoom{{Of: 1}, {Of: 1}}}).Error)
	var l lease
	stand.Must(t, db.Preload("Rooms").First(&l).Error)
	for _, title := range []string{"b", "c"} {
		l.Title = title
		stand.Must(t, db.Save(&l).Error)
		stand.Equal(t, "version", stand.Row[lease](t, db, l.ID).Version, l.Version)
	}
}
