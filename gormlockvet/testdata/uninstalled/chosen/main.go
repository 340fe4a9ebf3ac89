package main

import (
	"example.com/shop/around/models"
	"example.com/shop/uninstalled/store"
	"example.com/shop/uninstalled/switched/db"
	"github.com/gormlock/gormlock"
)

func main() {
	opened := db.Open()
	if err := opened.Use(gormlock.New()); err != nil {
		panic(err)
	}
	_ = store.New(opened).Save(&models.Account{})
}
