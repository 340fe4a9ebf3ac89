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

// A merge that does not find the row says the same.
func TestSaveMerged_ofARowThatIsHidden(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&shelter{}})
	base := shelter{Of: 1}
	stand.Must(t, db.Create(&base).Error)
	mine := base
	mine.Name = "x"
	err := gormlock.SaveMerged(db.WithContext(context.WithValue(t.Context(), renterKey{}, int64(2))), &mine, &base)
	if stale := stand.MustBeStale(t, err); !stale.Deleted || !strings.Contains(err.Error(), "or a clause of its model hides it") {
		t.Error(err)
	}
}

// shelter is hidden from other renters, unless a statement is Unscoped.
type shelter struct {
	ID      int64
	Of      shelterRenter
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type shelterRenter int64

func (shelterRenter) QueryClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{scopedRenter{ofRenter{f}}}
}

func (shelterRenter) UpdateClauses(f *schema.Field) []clause.Interface {
	return []clause.Interface{scopedRenter{ofRenter{f}}}
}

type scopedRenter struct{ ofRenter }

func (s scopedRenter) ModifyStatement(stmt *gorm.Statement) {
	if !stmt.Unscoped {
		s.ofRenter.ModifyStatement(stmt)
	}
}
