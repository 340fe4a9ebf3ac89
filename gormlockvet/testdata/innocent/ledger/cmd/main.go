package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"example.com/shop/innocent/ledger"
	"github.com/gormlock/gormlock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

func main() {
	db, err := open(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	audit, err := open(os.Getenv("AUDIT_URL"))
	if err != nil {
		log.Fatal(err)
	}
	if err := ledger.New(db, audit, nil).Nightly(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func open(dsn string) (*gorm.DB, error) {
	config := &gorm.Config{SkipDefaultTransaction: true}
	db, err := gorm.Open(postgres.New(postgres.Config{DSN: dsn}), config)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	plugin := gormlock.New(gormlock.WithKeyNames())
	return db, errors.Join(db.Use(plugin), db.AutoMigrate(&ledger.Account{}))
}
