// Package cases has models with right and wrong tags. Package runtime lets gormlock say what it thinks of each, and a test
// holds that against what the finding says.
package cases

import (
	"database/sql"
	"time"

	"gorm.io/gorm"
)

// All are the models, as GORM meets them.
var All = []any{
	&Plain{}, &Rails{}, &Hibernate{}, &Initial{}, &Pointer{}, &Null{}, &Temporal{}, &NullTime{}, &Xmin{}, &Fenced{}, &Bare{}, &Both{},
	&Unversioned{}, &Mixed{}, &Prefixed{}, &Composite{}, &Small{}, &Named{}, &DefaultRight{}, &Blanks{}, &Root{},
	&Unknown{}, &UnknownMode{}, &TwoModes{}, &Capital{}, &Text{}, &Float{}, &Slice{}, &Related{}, &Left{}, &KeyVersion{}, &KeyLess{},
	&Twice{}, &TwiceMixed{}, &InitialText{}, &InitialNegative{}, &InitialTime{}, &RailsTime{}, &XminInitial{}, &XminType{}, &XminBare{},
	&NumberOfTime{}, &ReadOnly{}, &CreateOnly{}, &Hidden{}, &DefaultWrong{}, &DefaultRails{}, &Serialized{}, &UnversionedMore{}, &UnversionedAlone{},
	&UnversionedLeft{}, &FenceText{}, &FenceSmall{}, &FenceUnsigned{}, &FenceTime{}, &FenceKeyless{}, &FenceKey{}, &FenceReadOnly{},
	&FenceAuto{}, &FenceInteger{}, &FenceSize{}, &FenceSerial{}, &FenceWord{}, &FenceEmptyKey{}, &FenceTwoKeys{}, &FenceTwice{}, &FenceLeft{},
	&EmbeddedWrong{}, &Uint{}, &Bytes{}, &NamedInt{}, &NamedTime{}, &NullString{}, &PointerPointer{},
	&RootOnColumn{}, &RootMore{}, &RootOfPlain{}, &RootOfXmin{}, &RootChildren{}, &RootLeft{}, &RootNamed{},
}

type Plain struct {
	ID      int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Rails struct {
	ID          int64
	LockVersion int32 `gorm:"default:0" gormlock:"version,rails"`
}

type Hibernate struct {
	ID      int64
	Version int16 `gormlock:"version,hibernate"`
}

type Initial struct {
	ID      int64
	Version int64 `gorm:"default:7" gormlock:"version,initial=7"`
}

type Pointer struct {
	ID      int64
	Version *int64 `gormlock:"version"`
}

type Null struct {
	ID      int64
	Version sql.NullInt32 `gormlock:"version"`
}

type Temporal struct {
	ID      int64
	Changed time.Time `gormlock:"version"`
}

type NullTime struct {
	ID      int64
	Changed sql.NullTime `gormlock:"version,hibernate"`
}

type Xmin struct {
	ID   int64
	Xmin uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

type Fenced struct {
	ID    int64
	Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
}

type Bare struct {
	ID    int64
	Fence sql.NullInt64 `gormlock:"fence"`
}

type Both struct {
	ID      int64
	Version int64  `gormlock:"version"`
	Fence   *int64 `gorm:"type:numeric(20)" gormlock:"fence,key=both"`
}

type Unversioned struct {
	ID      int64
	Note    string `gormlock:"unversioned"`
	Version int64  `gormlock:"version"`
}

// Base is there to be embedded: it needs no key of its own.
type Base struct {
	Version int64 `gormlock:"version"`
}

type Mixed struct {
	gorm.Model
	Base
}

type Prefixed struct {
	ID   int64
	Meta Base `gorm:"embedded;embeddedPrefix:meta_"`
}

type Composite struct {
	Tenant  int64 `gorm:"primaryKey"`
	Number  int64 `gorm:"primaryKey"`
	Version int64 `gormlock:"version"`
}

type Small struct {
	ID      int64
	Version uint8 `gormlock:"version"`
}

type Named struct {
	Code    string `gorm:"primaryKey"`
	Version int64  `gorm:"column:lock" gormlock:"version"`
}

type DefaultRight struct {
	ID      int64
	Version int64 `gorm:"default:1" gormlock:"version"`
}

type Blanks struct {
	ID      int64
	Version int64 `gormlock:" version , rails "`
}

// Root is a child that moves the version of what it belongs to.
type Root struct {
	ID      int64
	Version int64 `gormlock:"version"`
}

type Unknown struct {
	ID      int64
	Version int64 `gormlock:"versoin"` // want `tags: Unknown.Version: unknown word "versoin" in the tag`
}

type UnknownMode struct {
	ID      int64
	Version int64 `gormlock:"version,django"` // want `tags: UnknownMode.Version: unknown mode "django"`
}

type TwoModes struct {
	ID      int64
	Version int64 `gormlock:"version,rails,hibernate"` // want `"hibernate" after rails: a version has one mode`
}

type Capital struct {
	ID      int64
	Version int64 `gormlock:"Version"` // want `unknown word "Version"`
}

type Text struct {
	ID      int64
	Version string `gormlock:"version"` // want `a version field must be an integer, .*, not string`
}

type Float struct {
	ID      int64
	Version float64 `gormlock:"version"` // want `not float64`
}

type Slice struct {
	ID      int64
	Version []int64 `gormlock:"version"` // want `a version field must be a column`
}

type Related struct {
	ID      int64
	PlainID int64
	Plain   Plain `gormlock:"version"` // want `a version field must be a column`
}

type Left struct {
	ID      int64
	Version int64 `gorm:"-" gormlock:"version"` // want `a version field must be a column`
}

type KeyVersion struct {
	Version int64 `gorm:"primaryKey" gormlock:"version"` // want `a version field cannot be the primary key`
}

type KeyLess struct {
	Name    string
	Version int64 `gormlock:"version"` // want `tags: KeyLess.Version: a versioned model needs a primary key`
}

func (KeyLess) TableName() string { return "keyless" }

type Twice struct {
	ID      int64
	Version int64 `gormlock:"version"`
	Second  int64 `gormlock:"version"` // want `tags: Twice.Second: a second version field beside Version: keep one`
}

type TwiceMixed struct {
	ID int64
	Base
	Second int64 `gormlock:"version"` // want `a second version field beside Version`
}

type InitialText struct {
	ID      int64
	Version int64 `gormlock:"version,initial=one"` // want `initial=one: the first version must be a whole number, 0 or more`
}

type InitialNegative struct {
	ID      int64
	Version int64 `gormlock:"version,initial=-1"` // want `initial=-1: the first version`
}

type InitialTime struct {
	ID      int64
	Changed time.Time `gormlock:"version,initial=1"` // want `initial=1: a time has no first number`
}

type RailsTime struct {
	ID      int64
	Changed time.Time `gormlock:"version,rails"` // want `a Rails lock column must be an integer, not time.Time`
}

type XminInitial struct {
	ID   int64
	Xmin uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin,initial=1"` // want `initial=1: the server sets xmin`
}

type XminType struct {
	ID   int64
	Xmin int64 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"` // want `needs a uint32 field, not int64`
}

type XminBare struct {
	ID   int64
	Xmin uint32 `gormlock:"version,xmin"` // want `tag the system column`
}

type ReadOnly struct {
	ID      int64
	Version int64 `gorm:"->" gormlock:"version"` // want `a version column must be readable and writable`
}

type CreateOnly struct {
	ID      int64
	Version int64 `gorm:"<-:create" gormlock:"version"` // want `a version column must be readable and writable`
}

type NumberOfTime struct {
	ID        int64
	UpdatedAt int64 `gormlock:"version"` // want `a version that is a number cannot be a time that GORM sets`
}

type Hidden struct {
	ID      int64
	Version int64 `gorm:"->:false;<-" gormlock:"version"` // want `a version column must be readable and writable`
}

type DefaultWrong struct {
	ID      int64
	Version int64 `gorm:"default:0" gormlock:"version"` // want `default:0 disagrees with the first version 1: write default:1`
}

type DefaultRails struct {
	ID      int64
	Version int64 `gorm:"default:1" gormlock:"version,rails"` // want `default:1 disagrees with the first version 0`
}

type Serialized struct {
	ID      int64
	Version int64 `gorm:"serializer:json" gormlock:"version"` // want `a version field must hold what its column holds, without a serializer`
}

type UnversionedMore struct {
	ID      int64
	Note    string `gormlock:"unversioned,checked"` // want `has the option renewed and no other: remove "checked"`
	Until   string `gormlock:"unversioned,renewed"`
	Version int64  `gormlock:"version"`
}

type UnversionedAlone struct {
	ID   int64
	Note string `gormlock:"unversioned"` // want `tags: UnversionedAlone has unversioned fields and no version field`
}

func (UnversionedAlone) TableName() string { return "alone" }

type UnversionedLeft struct {
	ID      int64
	Note    string `gorm:"-" gormlock:"unversioned"` // want `an unversioned field must be a column`
	Version int64  `gormlock:"version"`
}

type RootOnColumn struct {
	ID      int64
	PlainID int64 `gormlock:"root"` // want `not for a column`
}

type RootMore struct {
	ID      int64
	PlainID int64
	Plain   *Plain `gormlock:"root,touch"` // want `has no options: remove "touch"`
}

type RootOfPlain struct {
	ID        int64
	KeyLessID int64
	KeyLess   *Versionless `gorm:"foreignKey:KeyLessID" gormlock:"root"` // want `the root Versionless has no version field to move`
}

type Versionless struct {
	ID int64
}

type RootOfXmin struct {
	ID     int64
	XminID int64
	Xmin   Xmin `gormlock:"root"` // want `the root Xmin has the version xmin`
}

type RootChildren struct {
	ID     int64
	Plains []RootChild `gorm:"foreignKey:ParentID" gormlock:"root"` // want `is for a belongs-to`
}

type RootChild struct {
	ID       int64
	ParentID int64
}

type RootLeft struct {
	ID      int64
	PlainID int64
	Plain   *Plain `gorm:"-" gormlock:"root"` // want `is for a belongs-to`
}

type RootNamed struct {
	ID      int64
	OwnerID int64
	Owner   *Plain `gorm:"foreignKey:OwnerID" gormlock:"root"`
}
