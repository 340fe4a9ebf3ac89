// Package invariants judges every way to write a versioned row against a server that keeps an audit.
//
// A trigger on each table writes down every change with the row before and after it. The tests keep a ledger of which
// state of a row each struct has read. A committed change of a row by a writer who had read another state of it is a
// silent overwrite, however it came about; the test need not know how gormlock works to see it.
//
// TestMatrix crosses statements with models, states of the struct, transactions and configurations. TestWalk lets two
// writers make calls at random, with rollbacks, savepoints and hooks. FuzzCallChain builds one call of what GORM can
// chain. All three share the same judge. TestRooted crosses statements with parts, whose roots must move: an oracle in SQL finds
// those that stood.
//
// The matrix and a fixed number of walks and chains run always, the same in each run. GORMLOCK_INVARIANTS=1h lets random
// samples and walks go on for that long; GORMLOCK_SEED=n repeats the samples, -rapid.seed=n the walks.
package invariants

import (
	"flag"
	"os"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("GORMLOCK_INVARIANTS") == "" && flag.Lookup("rapid.seed").Value.String() == "0" {
		_ = flag.Set("rapid.seed", "1")
	}
	pgtest.Main(m)
}
