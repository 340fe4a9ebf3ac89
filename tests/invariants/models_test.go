package invariants

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

var errHook = errors.New("the hook fails")

func (Failing) AfterSave(tx *gorm.DB) error   { return failIfTold(tx) }
func (Failing) AfterDelete(tx *gorm.DB) error { return failIfTold(tx) }

func failIfTold(tx *gorm.DB) error {
	if told, ok := tx.Statement.Context.Value(hookKey{}).(*bool); ok {
		*told = true
		return errHook
	}
	return nil
}

func withFailingHook(ctx context.Context, ran *bool) context.Context {
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
	Pointer struct {
		ID int64
		Columns
		Version *int64 `gormlock:"version"`
	}
	Null struct {
		ID int64
		Columns
		Version sql.NullInt64 `gormlock:"version"`
	}
	Small struct {
		Failing
		ID int64
		Columns
		Version uint16 `gormlock:"version,initial=7"`
	}
	Zero struct {
		ID int64
		Columns
		Version int32 `gormlock:"version,initial=0"`
	}
	Rails struct {
		ID int64
		Columns
		LockVersion int64 `gorm:"default:0" gormlock:"version,rails"`
		UpdatedAt   time.Time
	}
	RailsNull struct {
		ID int64
		Columns
		LockVersion sql.NullInt32 `gormlock:"version,rails"`
	}
	RailsPair struct {
		Org int64 `gorm:"primaryKey;autoIncrement:false"`
		No  int64 `gorm:"primaryKey;autoIncrement:false"`
		Columns
		LockVersion int64 `gormlock:"version,rails"`
	}
	Hibernate struct {
		Failing
		ID string `gorm:"primaryKey"`
		Columns
		Version   int64 `gormlock:"version,hibernate"`
		DeletedAt gorm.DeletedAt
	}
	HibernateTime struct {
		ID string `gorm:"type:uuid;primaryKey"`
		Columns
		Version time.Time `gormlock:"version,hibernate"`
	}
	Timed struct {
		ID int64
		Columns
		Version time.Time `gormlock:"version"`
	}
	TimedMilli struct {
		Org int64 `gorm:"primaryKey;autoIncrement:false"`
		No  int64 `gorm:"primaryKey;autoIncrement:false"`
		Columns
		Version time.Time `gorm:"type:timestamptz(3)" gormlock:"version"`
	}
	TimedSecond struct {
		ID int64
		Columns
		Version time.Time `gorm:"type:timestamp(0)" gormlock:"version"`
	}
	Xmin struct {
		ID int64
		Columns
		Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
	}
	XminUUID struct {
		Failing
		ID string `gorm:"type:uuid;primaryKey"`
		Columns
		Version   uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
		DeletedAt gorm.DeletedAt
	}
	Pair struct {
		Org int64 `gorm:"primaryKey;autoIncrement:false"`
		No  int64 `gorm:"primaryKey;autoIncrement:false"`
		Columns
		Version   int64 `gormlock:"version"`
		DeletedAt gorm.DeletedAt
	}
	UUID struct {
		ID string `gorm:"type:uuid;primaryKey"`
		Columns
		Version int64 `gormlock:"version"`
	}
	Char struct {
		Failing
		ID string `gorm:"type:char(12);primaryKey"`
		Columns
		Version int64 `gormlock:"version"`
	}
	CharZero struct {
		ID string `gorm:"type:char(12);primaryKey"`
		Columns
		Version uint `gormlock:"version,initial=0"`
	}
	Numeric struct {
		ID string `gorm:"type:numeric(20,1);primaryKey"`
		Columns
		Version int64 `gormlock:"version"`
	}
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
	NestedLock struct {
		By      string
		Version int64 `gormlock:"version"`
	}
)
