package main

import (
	"example.com/shop/around/models"
	"example.com/shop/uninstalled/store"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

func main() {
	db, err := gorm.Open(postgres.Open("dsn"), &gorm.Config{}) // want `uninstalled: this db never meets db.Use\(gormlock.New\(\)\): the tags of Account are only text to it`
	if err != nil {
		panic(err)
	}
	_ = store.New(db).Save(&models.Account{})
}
