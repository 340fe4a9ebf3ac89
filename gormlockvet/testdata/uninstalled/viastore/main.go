package main

import (
	"example.com/shop/around/models"
	"example.com/shop/uninstalled/store"
)

func main() {
	db, err := store.Open("dsn") // want `uninstalled: this db never meets`
	if err != nil {
		panic(err)
	}
	_ = store.New(db).Save(&models.Account{})
	kept()
}

func kept() {
	s, err := store.Connect("dsn") // want `the db opened at store.go:\d+ never meets`
	if err != nil {
		panic(err)
	}
	_ = s.Save(&models.Account{})
}
