package versions

import (
	"time"

	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Account struct {
	ID, Balance int64
	Note        string
	Seen        *time.Time
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Row struct {
	ID    int64
	State string
}

var (
	account, order Account
	row, before    Row
	t              = time.Now()
)

func setup(world *runner.World) {
	world.Tables(&Account{}, &Row{})
	account, order, row = Account{ID: 2, Balance: 100, Version: 7}, Account{ID: 3, Balance: 1}, Row{State: "new"}
	world.Rows(&Account{ID: 1, Version: 7}, &account, &order, &row)
	before = row
}
