package lease_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gormlock/gormlock/tests/internal/torture"
)

// loss: who lost a lease because it ran out believed in it until then, awake or not, and to the nanosecond; who was told
// before that, until it asked last.
func loss(lost torture.Event) (call, ret int64) {
	call = lost.Call
	if lost.Return >= lost.Until {
		call = lost.Until - int64(time.Millisecond) // the machine's two clocks drift by less
	}
	return call, max(call, lost.Return)
}

// The control of the histories: they see a lease that was given away too early.
func TestLoss_ofWhatWasGivenAwayIsSeen(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second)
	early := []torture.Event{
		{What: "held", Token: 1, Call: 1, Return: 2}, {What: "lost", Token: 1, Call: 3, Return: 30 * second, Until: 20 * second},
		{What: "held", Token: 2, Call: 10 * second, Return: 11 * second},
	}
	if torture.NewHistory(early, 0, loss, nil).Mutex(t) != porcupine.Illegal {
		t.Error("a lease that was given away while its holder slept is not seen")
	}
}
