// Command bank serves the bank.
package main

import (
	"log"
	"net/http"
	"os"

	"example.com/shop/planted/bank/api"
	"example.com/shop/planted/bank/model"
	"example.com/shop/planted/bank/service"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

func main() {
	db, err := gorm.Open(postgres.Open(os.Getenv("DATABASE_URL")), &gorm.Config{}) // misuse: uninstalled
	if err != nil {
		log.Fatal(err)
	}
	if err := db.AutoMigrate(&model.Account{}, &model.Entry{}); err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	(&api.Server{DB: db}).Routes(mux)
	_ = service.New(db, http.DefaultClient)
	log.Fatal(http.ListenAndServe("localhost:8080", mux))
}
