package renamingkeys

import "gorm.io/gorm"

func fn(*gorm.DB) error { return nil }
