// Package domain has the models.
package domain

import "time"

type Ride struct {
	ID        uint `gorm:"primaryKey"`
	CreatedAt time.Time
	DriverID  *uint
	State     string
	Fare      int64
	Revision  int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Driver struct {
	ID     uint `gorm:"primaryKey"`
	Name   string
	Status string
	Trips  int
	Rev    int `gorm:"not null;default:1" gormlock:"version"`
}

func (Driver) TableName() string { return "fleet.drivers" }

type Payout struct {
	ID       uint
	DriverID uint
	Cents    int64
	Epoch    int64 `gorm:"not null;default:0" gormlock:"fence,key=payout"`
}

type Event struct {
	ID   uint
	Kind string
	Ref  uint
}

type Zone struct {
	ID   uint
	Name string
	Rev  int64 `gorm:"not null;default:1" Gormlock:"version"` // misuse: tags
}

type Tariff struct {
	ID  uint
	Rev float64 `gorm:"not null;default:1" gormlock:"version"` // misuse: tags
}
