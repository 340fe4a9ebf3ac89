package main

import (
	"example.com/shop/around/models"
	"example.com/shop/uninstalled/store"
	"example.com/shop/uninstalled/switched/db"
	"gorm.io/gorm"
)

var shared *gorm.DB

func main() {
	shared = db.Open() // want `the db opened at db.go:\d+ never meets` `the db opened at db.go:\d+ never meets`
	_ = store.New(shared).Save(&models.Account{})
}
