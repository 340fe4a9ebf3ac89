package merging

import "github.com/gormlock/gormlock/tests/docs/runner"

type Account struct {
	ID, Balance int64
	Note        string
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

var account Account

func setup(world *runner.World) {
	world.Tables(&Account{})
	account = Account{ID: 1, Balance: 100, Version: 7}
	world.Rows(&account)
}
