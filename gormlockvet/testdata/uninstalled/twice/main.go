package main

import (
	"example.com/shop/around/models"
	"github.com/gormlock/gormlock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

func main() {
	db, err := gorm.Open(postgres.Open("dsn"))
	if err != nil || db.Use(gormlock.New()) != nil {
		panic(err)
	}
	_ = db.Save(&models.Account{}).Error
	_ = replica()
}

func replica() error {
	db, err := gorm.Open(postgres.Open("other")) // want `this db never meets`
	if err != nil {
		return err
	}
	return db.Save(&models.Account{}).Error
}
