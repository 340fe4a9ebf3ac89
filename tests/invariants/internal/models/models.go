// Package models has the models of the matrix. It is a package of its own because what the generics API makes of each model takes
// long to compile.
package models

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"gorm.io/gorm"
)

// Columns are those that every model has besides its key and its version.
type Columns struct {
	A    int64  // what writers write
	B    int64  // what rivals write
	U    string `gorm:"unique"`
	Note string `gormlock:"unversioned"`
}

// Failing fails a write after it was made, if its ctx says so.
type Failing struct{}

type hookKey struct{}

// ErrHook is the error of a hook that was told to fail.
var ErrHook = errors.New("the hook fails")

// AfterSave fails if it is told to, as does AfterDelete.
func (Failing) AfterSave(tx *gorm.DB) error { return failIfTold(tx) }

// AfterDelete is a hook of deletes.
func (Failing) AfterDelete(tx *gorm.DB) error { return failIfTold(tx) }

func failIfTold(tx *gorm.DB) error {
	if told, ok := tx.Statement.Context.Value(hookKey{}).(*bool); ok {
		*told = true
		return ErrHook
	}
	return nil
}

// WithFailingHook tells hooks to fail, and to say so.
func WithFailingHook(ctx context.Context, ran *bool) context.Context {
	return context.WithValue(ctx, hookKey{}, ran)
}

type (
	// Plain is what most programs have.
	Plain struct {
		ID int64
		Columns
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	// Hooked has hooks, an update time and a soft delete.
	Hooked struct {
		Failing
		ID int64
		Columns
		Version   int64 `gormlock:"version"`
		UpdatedAt time.Time
		DeletedAt gorm.DeletedAt
	}
	// Pointer has a version that may be nil.
	Pointer struct {
		ID int64
		Columns
		Version *int64 `gormlock:"version"`
	}
	// Null has a version that may be NULL.
	Null struct {
		ID int64
		Columns
		Version sql.NullInt64 `gormlock:"version"`
	}
	// Small has a version of two bytes that begins at 7.
	Small struct {
		Failing
		ID int64
		Columns
		Version uint16 `gormlock:"version,initial=7"`
	}
	// Zero has a version that begins at 0.
	Zero struct {
		ID int64
		Columns
		Version int32 `gormlock:"version,initial=0"`
	}
	// Rails is written by ActiveRecord too.
	Rails struct {
		ID int64
		Columns
		LockVersion int64 `gorm:"default:0" gormlock:"version,rails"`
		UpdatedAt   time.Time
	}
	// RailsNull is one whose lock_version may be NULL.
	RailsNull struct {
		ID int64
		Columns
		LockVersion sql.NullInt32 `gormlock:"version,rails"`
	}
	// RailsPair is one with a composite key.
	RailsPair struct {
		Org int64 `gorm:"primaryKey;autoIncrement:false"`
		No  int64 `gorm:"primaryKey;autoIncrement:false"`
		Columns
		LockVersion int64 `gormlock:"version,rails"`
	}
	// Hibernate is written by Hibernate too.
	Hibernate struct {
		Failing
		ID string `gorm:"primaryKey"`
		Columns
		Version   int64 `gormlock:"version,hibernate"`
		DeletedAt gorm.DeletedAt
	}
	// HibernateTime is one whose version is a time.
	HibernateTime struct {
		ID string `gorm:"type:uuid;primaryKey"`
		Columns
		Version time.Time `gormlock:"version,hibernate"`
	}
	// Timed has a version that is a time.
	Timed struct {
		ID int64
		Columns
		Version time.Time `gormlock:"version"`
	}
	// TimedMilli has one of milliseconds, and a composite key.
	TimedMilli struct {
		Org int64 `gorm:"primaryKey;autoIncrement:false"`
		No  int64 `gorm:"primaryKey;autoIncrement:false"`
		Columns
		Version time.Time `gorm:"type:timestamptz(3)" gormlock:"version"`
	}
	// TimedSecond has one of seconds.
	TimedSecond struct {
		ID int64
		Columns
		Version time.Time `gorm:"type:timestamp(0)" gormlock:"version"`
	}
	// Xmin takes the server's xmin for its version.
	Xmin struct {
		ID int64
		Columns
		Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
	}
	// XminUUID does so too, with a key that is a UUID.
	XminUUID struct {
		Failing
		ID string `gorm:"type:uuid;primaryKey"`
		Columns
		Version   uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
		DeletedAt gorm.DeletedAt
	}
	// Pair has a composite key.
	Pair struct {
		Org int64 `gorm:"primaryKey;autoIncrement:false"`
		No  int64 `gorm:"primaryKey;autoIncrement:false"`
		Columns
		Version   int64 `gormlock:"version"`
		DeletedAt gorm.DeletedAt
	}
	// UUID has a key that the server spells in its own way.
	UUID struct {
		ID string `gorm:"type:uuid;primaryKey"`
		Columns
		Version int64 `gormlock:"version"`
	}
	// Char has a key that the server fills up with blanks.
	Char struct {
		Failing
		ID string `gorm:"type:char(12);primaryKey"`
		Columns
		Version int64 `gormlock:"version"`
	}
	// CharZero does so too, with a version that begins at 0.
	CharZero struct {
		ID string `gorm:"type:char(12);primaryKey"`
		Columns
		Version uint `gormlock:"version,initial=0"`
	}
	// Numeric has a key to which the server adds digits.
	Numeric struct {
		ID string `gorm:"type:numeric(20,1);primaryKey"`
		Columns
		Version int64 `gormlock:"version"`
	}
	// Text has a key that is any text.
	Text struct {
		ID string `gorm:"primaryKey"`
		Columns
		Version int64 `gormlock:"version"`
	}
	// Narrow has columns that GORM may not always write.
	Narrow struct {
		ID int64
		Columns
		OnCreate int64 `gorm:"<-:create"`
		OnUpdate int64 `gorm:"<-:update"`
		Default  int64 `gorm:"default:5"`
		Doubled  int64 `gorm:"->;type:bigint generated always as (b * 2) stored"`
		Version  int64 `gormlock:"version"`
	}
	// Nested keeps its version and a part of its columns in structs of its own.
	Nested struct {
		ID int64
		Columns
		Lock  NestedLock `gorm:"embedded;embeddedPrefix:lock_"`
		Extra *int64
	}
	// NestedLock has the version of Nested.
	NestedLock struct {
		By      string
		Version int64 `gormlock:"version"`
	}
)
