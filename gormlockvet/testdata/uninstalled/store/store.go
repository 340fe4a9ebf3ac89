package store

import (
	"example.com/shop/around/models"
	"github.com/gormlock/gormlock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

type Store struct{ db *gorm.DB }

func Open(dsn string) (*gorm.DB, error) {
	db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{})
	if err != nil {
		return nil, err
	}
	return db, nil
}

func OpenInstalled(dsn string) (*gorm.DB, error) {
	db, err := gorm.Open(postgres.Open(dsn))
	if err != nil {
		return nil, err
	}
	return db, db.Use(gormlock.New())
}

func Install(db *gorm.DB) error { return db.Use(gormlock.New(gormlock.DefaultTimeout(1))) }

func New(db *gorm.DB) *Store { return &Store{db: db} }

func (s *Store) Save(a *models.Account) error { return s.db.Save(a).Error }

// Connect keeps its db.
func Connect(dsn string) (*Store, error) {
	db, err := gorm.Open(postgres.Open(dsn))
	return &Store{db}, err
}
