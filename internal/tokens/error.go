package tokens

import (
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// ErrNotDurable says that a commit ended with a warning, because a wait for a synchronous standby was cancelled. None of its tokens may be used.
var ErrNotDurable = errors.New("the server did not wait for its commit to be durable")

// Explain adds the cure to the error of a missing table.
func Explain(err error) error {
	if sqlstate.Is(err, sqlstate.UndefinedTable) {
		return fmt.Errorf("%w (fence.Migrate creates the table)", err)
	}
	return err
}
