package versions_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// renter is a field that hides the rows of others, as programs with tenants make it.
type renter int64

func (renter) QueryClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{ofRenter{f}}
}
func (renter) UpdateClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{ofRenter{f}}
}
func (renter) DeleteClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{ofRenter{f}}
}

type ofRenter struct{ field *schema.Field }

func (ofRenter) Name() string               { return "" }
func (ofRenter) Build(clause.Builder)       {}
func (ofRenter) MergeClause(*clause.Clause) {}

func (o ofRenter) ModifyStatement(stmt *gorm.Statement) {
	if id, ok := stmt.Context.Value(renterKey{}).(int64); ok {
		stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: o.field.DBName}, Value: id}}})
	}
}

type renterKey struct{}

type lodging struct {
	ID      int64
	Of      renter
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A row that the model hides is not said to be gone.
func TestStale_ofARowThatIsHidden(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&lodging{}})
	f := lodging{Of: 1}
	stand.Must(t, db.Create(&f).Error)
	other := db.WithContext(context.WithValue(t.Context(), renterKey{}, int64(2)))
	f.Name = "x"
	for name, err := range map[string]error{
		"Save": other.Save(&f).Error, "Update": other.Model(&f).Update("name", "y").Error, "a slice": other.Model(&[]*lodging{&f}).Update("name", "z").Error,
	} {
		var stale *gormlock.StaleError
		if !errors.As(err, &stale) || !stale.Deleted || !strings.Contains(err.Error(), "gone, or a clause of its model hides it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	stand.Equal(t, "name", stand.Row[lodging](t, db, f.ID).Name, "")
	stand.Must(t, db.Delete(&lodging{}, f.ID).Error)
}
