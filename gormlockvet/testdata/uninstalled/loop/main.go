package main

import (
	"example.com/shop/around/models"
	"github.com/gormlock/gormlock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// Plugins that are used one by one may be ours.
func main() {
	var db *gorm.DB
	var err error
	if false {
		db, err = gorm.Open(postgres.Open("a"))
	} else {
		db, err = gorm.Open(postgres.Open("b"))
	}
	if err != nil {
		panic(err)
	}
	for _, plugin := range []gorm.Plugin{gormlock.New()} {
		if err := db.Use(plugin); err != nil {
			panic(err)
		}
	}
	_ = db.Save(&models.Account{}).Error
}
