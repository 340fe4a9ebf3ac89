package once

import "github.com/gormlock/gormlock/tests/docs/runner"

type Receipt struct{ Charge int64 }

type Charge struct {
	ID, Amount int64
	Customer   string
}

var (
	amount                   int64 = 30
	customer, idempotencyKey       = "alice", "4711"
	body                           = []byte("30 of alice")
	answer                   Receipt
)

func setup(world *runner.World) {
	world.Tables(&Charge{})
	answer = Receipt{}
}
