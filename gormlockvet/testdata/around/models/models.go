// Package models names no GORM, as many packages of models do.
package models

type Account struct {
	ID      int64
	Balance int64
	Owner   string
	Seen    int64 `gormlock:"unversioned"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Person struct {
	ID      int64
	Name    string
	Version int64 `gormlock:"version"`
}

type Invoice struct {
	ID      int64
	Total   int64
	Version int64 `gormlock:"version"`
}

const invoices = "billing.invoices"

func (Invoice) TableName() string { return invoices }

type Report struct {
	ID    int64
	Body  string
	Fence int64 `gormlock:"fence,key=report"`
}

type Snapshot struct {
	ID   int64
	Body string
	Xmin uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

type Shielded struct {
	ID      int64
	Body    string
	Version int64 `gormlock:"version"`
}

type Plain struct {
	ID   int64
	Body string
}
