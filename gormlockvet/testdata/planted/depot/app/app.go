// Package app names neither GORM nor the models in what others see of it.
package app

import (
	"example.com/shop/planted/depot/model"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

func Run(dsn string) error {
	db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{})
	if err != nil {
		return err
	}
	return db.Save(&model.Crate{ID: 1}).Error
}
