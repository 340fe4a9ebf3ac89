package models

import "gorm.io/gorm"

type (
	// Owner is the root of parts.
	Owner struct {
		ID      int64
		Title   string
		Version int64 `gormlock:"version"`
		GroupID *int64
		Group   *Group `gormlock:"root"`
	}
	// Group is the root of owners.
	Group struct {
		ID      int64
		Title   string
		Version int64 `gormlock:"version"`
	}
	// Part belongs to an owner.
	Part struct {
		ID int64
		Columns
		Version int64  `gormlock:"version"`
		OwnerID *int64 `gorm:"index"`
		Owner   *Owner `gormlock:"root"`
	}
	// SoftPart does so too, with hooks and a soft delete.
	SoftPart struct {
		Failing
		ID int64
		Columns
		Version   int64 `gormlock:"version,rails"`
		DeletedAt gorm.DeletedAt
		OwnerID   int64
		Owner     *Owner `gormlock:"root"`
	}
)
