package main

import (
	"example.com/shop/around/models"
	"example.com/shop/uninstalled/store"
	"github.com/gormlock/gormlock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

func main() {
	db, err := gorm.Open(postgres.Open("dsn"), &gorm.Config{})
	if err != nil {
		panic(err)
	}
	if err := db.Use(gormlock.New()); err != nil {
		panic(err)
	}
	_ = store.New(db).Save(&models.Account{})
	second, err := store.Open("dsn")
	if err != nil || store.Install(second) != nil {
		panic(err)
	}
	third, err := store.OpenInstalled("dsn")
	_, _ = third, err
	text, err := gorm.Open(postgres.Open("dsn"), &gorm.Config{DryRun: true})
	_, _ = text, err
}
