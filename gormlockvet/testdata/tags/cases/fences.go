package cases

import (
	"database/sql"
	"time"
)

type FenceText struct {
	ID    int64
	Fence string `gormlock:"fence"` // want `a fence field must be an int64, a pointer to one or a sql.NullInt64, not string`
}

type FenceSmall struct {
	ID    int64
	Fence int32 `gormlock:"fence"` // want `not int32`
}

type FenceUnsigned struct {
	ID    int64
	Fence uint64 `gormlock:"fence"` // want `not uint64`
}

type FenceTime struct {
	ID    int64
	Fence time.Time `gormlock:"fence"` // want `not time.Time`
}

type FenceKeyless struct {
	Name  string
	Fence int64 `gormlock:"fence"` // want `a fenced model needs a primary key`
}

func (FenceKeyless) TableName() string { return "fenceless" }

type FenceKey struct {
	Fence int64 `gorm:"primaryKey" gormlock:"fence"` // want `a fence field cannot be the primary key`
}

type FenceReadOnly struct {
	ID    int64
	Fence int64 `gorm:"<-:update" gormlock:"fence"` // want `a fence column must be readable and writable`
}

type FenceAuto struct {
	ID    int64
	Fence int64 `gorm:"autoUpdateTime" gormlock:"fence"` // want `cannot be a time that GORM sets`
}

type FenceInteger struct {
	ID    int64
	Fence int64 `gorm:"type:integer" gormlock:"fence"` // want `tokens need 64 bits and the column is integer`
}

type FenceSize struct {
	ID    int64
	Fence int64 `gorm:"size:32" gormlock:"fence"` // want `tokens need 64 bits and the column is integer`
}

type FenceSerial struct {
	ID    int64
	Fence int64 `gorm:"autoIncrement" gormlock:"fence"` // want `the column is bigserial`
}

type FenceWord struct {
	ID    int64
	Fence int64 `gormlock:"fence,report"` // want `unknown word "report" after fence`
}

type FenceEmptyKey struct {
	ID    int64
	Fence int64 `gormlock:"fence,key="` // want `key= names nothing`
}

type FenceTwoKeys struct {
	ID    int64
	Fence int64 `gormlock:"fence,key=a,key=b"` // want `a second key "b"`
}

type FenceTwice struct {
	ID     int64
	Fence  int64 `gormlock:"fence"`
	Second int64 `gormlock:"fence"` // want `a second fence field beside Fence`
}

type FenceLeft struct {
	ID    int64
	Fence int64 `gorm:"-:all" gormlock:"fence"` // want `a fence field must be a column`
}

// Wrong is embedded where it is wrong.
type Wrong struct {
	Version string `gormlock:"version"` // want `tags: Wrong.Version: a version field must be an integer`
}

type EmbeddedWrong struct {
	ID    int64
	Wrong // want `tags: EmbeddedWrong.Version: a version field must be an integer`
}

type Uint struct {
	ID      int64
	Version uint `gormlock:"version"`
}

type Bytes struct {
	ID      int64
	Version []byte `gormlock:"version"` // want `not \[\]uint8`
}

type number int64

type NamedInt struct {
	ID      int64
	Version number `gormlock:"version"`
}

type moment time.Time

type NamedTime struct {
	ID      int64
	Version moment `gormlock:"version"` // want `not cases.moment`
}

type NullString struct {
	ID      int64
	Version sql.NullString `gormlock:"version"` // want `not sql.NullString`
}

type PointerPointer struct {
	ID      int64
	Version **int64 `gormlock:"version"` // want `not \*\*int64`
}
