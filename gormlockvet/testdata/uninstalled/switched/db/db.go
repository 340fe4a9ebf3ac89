// Package db opens one of several databases, by functions without arguments.
package db

import (
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

var Kind, DSN string

func Open() *gorm.DB {
	switch Kind {
	case "other":
		return other()
	default:
		return usual()
	}
}

func other() *gorm.DB { return open(DSN + " dbname=other") }

func usual() *gorm.DB { return open(DSN) }

func open(dsn string) *gorm.DB {
	if dsn == "" {
		return nil
	}
	if db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{}); err != nil {
		panic(err)
	} else {
		return db
	}
}
