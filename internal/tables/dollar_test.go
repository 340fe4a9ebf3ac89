package tables_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/tables"
)

func TestDollarQuoted_endsWithItsText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "$$$$", "a": "$$a$$", "$1 a": "$$$1 a$$", "a $$ b": "$q1$a $$ b$q1$", "a$": "$q1$a$$q1$", "$$ $q1$": "$q2$$$ $q1$$q2$", "$$ $q1": "$q2$$$ $q1$q2$",
	} {
		if got := tables.DollarQuoted(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
