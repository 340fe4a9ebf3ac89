package belongs_test

import (
	"strings"
	"testing"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestUnscopedClear: GORM empties the foreign key, and makes a delete that fails. The error says what was done.
func TestUnscopedClear(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, all)
	c := settled(t, db)[0]
	err := db.Model(&c).Association("Home").Unscoped().Clear()
	if err == nil || strings.Contains(err.Error(), "nothing was executed") || !strings.Contains(err.Error(), "was set to NULL") {
		t.Error(err)
	}
	stand.Equal(t, "home", stored(t, db, 1).Home, 0)
}
