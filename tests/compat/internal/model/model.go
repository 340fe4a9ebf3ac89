// Package model is what gorm.io/gen makes package query of.
package model

import "time"

// Account has a version column.
type Account struct {
	ID        int64
	Name      string
	Balance   int64
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
	UpdatedAt time.Time
}

// TableName implements schema.Tabler.
func (Account) TableName() string { return "gen_accounts" }
