package main

import (
	"context"
	"log"

	"example.com/shop/planted/shop"
	"example.com/shop/planted/shop/data"
)

func main() {
	db, err := data.Connect("postgres://localhost/shop") // misuse: uninstalled
	if err != nil {
		log.Fatal(err)
	}
	s := shop.New(db)
	if err := s.Buy(context.Background(), 1, 2); err != nil {
		log.Fatal(err)
	}
}
