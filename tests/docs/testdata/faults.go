package faults

import "github.com/gormlock/gormlock/tests/docs/runner"

type row struct {
	ID   int64
	Name string
}

func (row) TableName() string { return "t" }

var m = map[string]any{"name": "new"}

func setup(world *runner.World) {
	world.Tables(&row{})
	world.Rows(&row{ID: 1, Name: "old"})
	db = db.Where("id = 1")
}
