// A program that only makes tables writes no row.
package main

import (
	"example.com/shop/around/models"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

func main() {
	db, err := gorm.Open(postgres.Open("dsn"))
	if err != nil {
		panic(err)
	}
	if err := db.AutoMigrate(&models.Account{}); err != nil {
		panic(err)
	}
}
