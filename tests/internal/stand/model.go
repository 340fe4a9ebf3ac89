// Package stand is what the tests of several promises share: models, ways to open a database with their tables, rivals, and the few assertions that
// read better by name.
package stand

import "time"

// Account is a row with a version.
type Account struct {
	ID      int64
	Balance int64
	Note    string `gormlock:"unversioned"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// PlainAccount is Account without a version.
type PlainAccount struct {
	ID      int64
	Balance int64
	Note    string
	Version int64
}

// LinedOrder is a row with a version, and with children that have one each.
type LinedOrder struct {
	ID      int64
	Title   string
	Lines   []LinedLine `gorm:"foreignKey:OrderID"`
	Version int64       `gormlock:"version"`
}

// LinedLine is a child of a LinedOrder.
type LinedLine struct {
	ID, OrderID int64
	Qty         int
	Version     int64 `gormlock:"version"`
}

// RailsTask has a version as Rails counts it.
type RailsTask struct {
	ID          int64
	State       string
	LockVersion int32 `gormlock:"version,rails"`
}

// XminTask uses the server's own version.
type XminTask struct {
	ID      int64
	State   string
	Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

// TimedTask has a version of time.
type TimedTask struct {
	ID      int64
	State   string
	Version time.Time `gormlock:"version"`
}
