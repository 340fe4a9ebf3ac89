// Command parcels serves.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"

	"example.com/shop/innocent/parcels/model"
	"example.com/shop/innocent/parcels/web"
	"github.com/gormlock/gormlock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// 17: plugins come from a list, the pool from a helper.
func open(dsn string, plugins ...gorm.Plugin) (*gorm.DB, error) {
	db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{TranslateError: true})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	for _, p := range plugins {
		if err := db.Use(p); err != nil {
			return nil, err
		}
	}
	return db, db.AutoMigrate(&model.Parcel{}, &model.Van{})
}

type app struct {
	db   *gorm.DB
	mux  *http.ServeMux
	stop []func() error
}

func main() {
	db, err := open(os.Getenv("DSN"), gormlock.New())
	if err != nil {
		log.Fatal(err)
	}
	a := &app{db: db, mux: http.NewServeMux()}
	web.New(a.db).Routes(nil)
	for _, stop := range a.stop {
		if err := stop(); err != nil {
			log.Print(err)
		}
	}
	if err := a.db.Save(&model.Van{}).Error; err != nil {
		log.Fatal(err)
	}
}
