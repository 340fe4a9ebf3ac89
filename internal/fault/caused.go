package fault

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/cause"
)

// Caused returns err with the cause of the end of db's context, if the context has ended.
func Caused(db *gorm.DB, err error) error {
	if err == nil || db == nil || db.Statement == nil {
		return err
	}
	return cause.Add(db.Statement.Context, err)
}

// AddCause adds that cause to the error of a statement that has failed.
func AddCause(db *gorm.DB) {
	if db.Error != nil {
		db.Error = Caused(db, db.Error)
	}
}
