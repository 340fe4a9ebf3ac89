package fences_test

import (
	"strings"
	"testing"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	guest struct {
		ID     int64
		Home   *address `gorm:"foreignKey:HomeOf"`
		Office *address `gorm:"foreignKey:OfficeOf"`
	}
	address struct {
		ID               int64
		HomeOf, OfficeOf *int64
		Fence            int64 `gorm:"not null;default:0" gormlock:"fence,key=guest"`
	}
)

// GORM gives a struct the keys of two associations, and stores the first.
func TestTwoAssociations_withAFenceAlone(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&guest{}, &address{}})
	db = stand.With(db, stand.Issue(t, db, "guest", 1))
	a := &address{}
	g := guest{Home: a, Office: a}
	if err := db.Create(&g).Error; err == nil || !strings.Contains(err.Error(), "would not store its office_of") {
		t.Errorf("new: %v", err)
	}
	stand.Equal(t, "the address", *a, address{})
	g.Office = nil
	stand.Must(t, db.Create(&g).Error)
	stand.Must(t, db.Model(&g).Association("Office").Append(a))
	row := stand.Row[address](t, db, a.ID)
	if row.HomeOf == nil || row.OfficeOf == nil {
		t.Errorf("stored: %+v", row)
	}
}
