package fencing

import (
	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Report struct {
	ID    int64
	Body  string
	Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
}

var report Report

func setup(world *runner.World) {
	world.Tables(&Report{})
	report = Report{ID: 1}
	runner.Check(db.Clauses(gormlock.IgnoreFence()).Create(&report))
}
