package main

import (
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

type Plain struct{ ID int64 }

func main() {
	db, err := gorm.Open(postgres.Open("dsn"))
	if err != nil {
		panic(err)
	}
	db.Save(&Plain{})
}
