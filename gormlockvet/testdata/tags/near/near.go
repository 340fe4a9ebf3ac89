// Package near has tags that nobody reads.
package near

import "time"

type Spelled struct {
	ID int64
	A  int64 `gormLock:"version"`                      // want `tags: Spelled.A: nothing reads the tag gormLock: the name is gormlock`
	B  int64 `gorm_lock:"version"`                     // want `nothing reads the tag gorm_lock`
	C  int64 `json:"c" gromlock:"fence,key=report"`    // want `nothing reads the tag gromlock`
	D  int64 `gormlocks:"unversioned"`                 // want `nothing reads the tag gormlocks`
	E  int64 `gorm:"gormlock:version"`                 // want `gormlock has a tag of its own and is not read inside the tag gorm: write gormlock:"version"`
	F  int64 `gorm:"not null;fence"`                   // want `fence is a word of the tag gormlock`
	G  int64 `gormlock:""`                             // want `the tag gormlock:"" says nothing`
	h  int64 `gormlock:"version"`                      // want `Spelled.h: GORM does not see an unexported field`
	I  int64 `gorm:"default:1;gormlock:version,rails"` // want `write gormlock:"version,rails" beside it`
}

type Base struct {
	ID int64
}

type Struct struct {
	Base `gormlock:"version"` // want `the tag gormlock on an embedded struct is not read`
}

type Fine struct {
	ID       int64
	Lock     string    `json:"gormlock"`
	Version  int64     `json:"version" gorm:"column:version;not null" gormlock:"version"`
	Changed  time.Time `gorm:"index:version"`
	Form     string    `form:"version" bson:"fence"`
	GormLike string    `gorm:"column:gormlock"`
}

func use(s Spelled) int64 { return s.h }

var _ = use
