package roots

import "github.com/gormlock/gormlock/tests/docs/runner"

type Order struct {
	ID      int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

var (
	order Order
	other = Order{ID: 4}
)

type Line struct {
	ID, Qty int64
	OrderID *int64
	Order   *Order `gormlock:"root"`
}

func setup(world *runner.World) {
	world.Tables(&Order{}, &Line{})
	order = Order{ID: 3}
	world.Rows(&order)
}
