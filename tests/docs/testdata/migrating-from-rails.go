package rails

import (
	"time"

	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Account struct {
	ID, Balance int64
	LockVersion int64 `gorm:"not null;default:0" gormlock:"version,rails"`
	UpdatedAt   time.Time
}

func setup(world *runner.World) { world.Tables(&Account{}) }
