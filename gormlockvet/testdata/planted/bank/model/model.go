// Package model has the tables of a bank.
package model

import "time"

type Account struct {
	ID        uint `gorm:"primaryKey"`
	Owner     string
	Balance   int64
	Currency  string
	LastSeen  *time.Time `gormlock:"unversioned"`
	UpdatedAt time.Time
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Entry struct {
	ID        uint
	AccountID uint
	Amount    int64
	Memo      string
	CreatedAt time.Time
}

type Card struct {
	ID      uint
	Number  string
	Limit   int64
	Version int `gorm:"column:lock_version;default:0" gormLock:"version,rails"` // misuse: tags
}

type Statement struct {
	ID      uint
	Month   string
	Total   int64
	Version string `gormlock:"version"` // misuse: tags
}

type Transfer struct {
	ID      uint
	From    uint
	To      uint
	version int64 `gormlock:"version"` // misuse: tags
}

type Limit struct {
	ID      uint
	Amount  int64
	Version int64 `gorm:"default:1" gormlock:"version,hibernate"` // misuse: tags
}

type Ledger struct {
	ID    uint
	Sum   int64
	Fence int32 `gormlock:"fence,key=ledger"` // misuse: tags
}

type Branch struct {
	ID      uint
	Name    string
	Version int64 `gorm:"not null;gormlock:version"` // misuse: tags
}

func (t Transfer) Seen() int64 { return t.version }
