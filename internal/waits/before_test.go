package waits_test

import (
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/waits"
)

func TestRead_isWhatCommentSaid(t *testing.T) {
	t.Parallel()
	const statement = "SELECT pg_catalog.pg_advisory_xact_lock($1::bigint)"
	for _, b := range []waits.Before{{Waited: 5200 * time.Millisecond}, {Waited: time.Millisecond, Left: time.Hour}} {
		if got := waits.Read(statement + b.Comment()); got != b {
			t.Errorf("%+v, want %+v", got, b)
		}
	}
	for _, text := range []string{"", statement, statement + " -- has waited long", statement + " -- has waited 99999999999999999999 ms"} {
		if got := waits.Read(text); got != (waits.Before{}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
