package flags

import (
	"testing"

	"gorm.io/gorm"
)

func TestSave(t *testing.T) {
	var db *gorm.DB
	db.Save(&Account{})
	_ = save
}
