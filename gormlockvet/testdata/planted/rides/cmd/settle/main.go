// Command settle pays the drivers, once a night.
package main

import (
	"context"
	"flag"
	"log"

	"example.com/shop/planted/rides/domain"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

type tracing struct{}

func (tracing) Name() string              { return "tracing" }
func (tracing) Initialize(*gorm.DB) error { return nil }

type settle struct {
	db  *gorm.DB
	dry bool
}

func (s *settle) run(ctx context.Context) error {
	var due []domain.Payout
	if err := s.db.WithContext(ctx).Find(&due).Error; err != nil || s.dry {
		return err
	}
	for i := range due {
		due[i].Cents = 0
		if err := s.db.WithContext(ctx).Save(&due[i]).Error; err != nil {
			return err
		}
	}
	return nil
}

func main() {
	dsn := flag.String("dsn", "", "the database")
	dry := flag.Bool("dry", false, "change nothing")
	flag.Parse()
	db, err := gorm.Open(postgres.Open(*dsn)) // misuse: uninstalled
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Use(tracing{}); err != nil {
		log.Fatal(err)
	}
	if err := (&settle{db: db, dry: *dry}).run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
