package sessionlock_test

import (
	"testing"

	"github.com/gormlock/gormlock/tests/internal/torture"
)

func TestMain(m *testing.M) { torture.Main(m, fight) }
