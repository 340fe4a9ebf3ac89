// Package model has the models.
package model

import "gorm.io/gorm"

type Parcel struct {
	ID       uint `gorm:"primaryKey"`
	State    string
	Weight   int64
	LastSeen string `gormlock:"unversioned"`
	Version  int64  `gorm:"not null;default:1" gormlock:"version"`
}

type Van struct {
	gorm.Model
	Plate   string `gorm:"uniqueIndex" validate:"required"`
	Load    int64
	Version uint `gorm:"not null;default:1" gormlock:"version"`
}

type Scan struct {
	ID       uint
	ParcelID uint
	Place    string
}

type Total struct {
	Day   string `gorm:"primaryKey"`
	Count int64
	Token int64 `gorm:"not null;default:0" gormlock:"fence,key=total"`
}

// Page is no model.
type Page struct {
	Version string `json:"version"`
	Lock    string `json:"lock" yaml:"gormlock"`
}
