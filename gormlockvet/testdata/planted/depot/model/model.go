package model

type Crate struct {
	ID      int64
	Weight  int64
	Version int64 `gorm:"default:1" gormlock:"version"`
}
