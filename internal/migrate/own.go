package migrate

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/tables"
)

// Own makes the tables of gormlock, all or none, and brings those of an earlier version up to date.
func Own(db *gorm.DB, once string) error {
	if err := usable(db, "MigrateAll"); err != nil {
		return err
	}
	return db.Session(&gorm.Session{NewDB: true}).Transaction(func(tx *gorm.DB) error {
		for _, table := range tables.Own(once) {
			if err := tx.Exec(table.Migration()).Error; err != nil {
				return fmt.Errorf("gormlock: MigrateAll, nothing was changed: table %s: %w", table.Name, err)
			}
		}
		return nil
	})
}
