package rollbacks_test

import (
	"errors"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// errUndo rolls a transaction back.
var errUndo = errors.New("undo")
