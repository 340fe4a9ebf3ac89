package hibernate

import "github.com/gormlock/gormlock/tests/docs/runner"

type Account struct {
	ID, Balance int64
	Version     int32 `gorm:"not null;default:0" gormlock:"version,hibernate"`
}

func setup(world *runner.World) { world.Tables(&Account{}) }
