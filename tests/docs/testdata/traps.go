package traps

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Document struct {
	ID          int64
	Title, Body string
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

var (
	doc  Document
	t    *testing.T
	lock func(*gorm.DB) *gorm.DB
)

func setup(world *runner.World) {
	world.Tables(&T{}, &Document{})
	doc = Document{ID: 1, Title: "old"}
	runner.Check(db.Create(&T{ID: 1}))
	world.Rows(&doc)
	lock, t = gormlock.WithXactLock(key), world.T
}
