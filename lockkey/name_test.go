package lockkey_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gormlock/gormlock/lockkey"
)

func TestString_neverMisleads(t *testing.T) {
	t.Parallel()
	for want, k := range map[string]lockkey.Key{
		"invoice/42":                  lockkey.Of("invoice", 42),
		"orders:42":                   lockkey.Of("orders:42"),
		"日本語/-7":                      lockkey.Of("日本語", -7),
		`"a/b"`:                       lockkey.Of("a/b"),
		`""`:                          lockkey.Of(""),
		`a/""/b`:                      lockkey.Of("a", "", "b"),
		`"say \"a\""`:                 lockkey.Of(`say "a"`),
		`"back\\slash"`:               lockkey.Of(`back\slash`),
		`"a\nlevel=error msg=forged"`: lockkey.Of("a\nlevel=error msg=forged"),
		`"\x1b[31m\x00\xff"`:          lockkey.Of("\x1b[31m\x00\xff"),
		`"\u202egpj.exe"`:             lockkey.Of("\u202egpj.exe"),
		"int64(7)":                    lockkey.Int64(7),
		`"int64(7)"`:                  lockkey.Of("int64(7)"),
		"pair(7,-42)":                 lockkey.Pair(7, -42),
		"invalid lock key: no parts: name what is locked": lockkey.Of(),
	} {
		if got := k.String(); got != want {
			t.Errorf("String is %s, want %s", got, want)
		}
	}
}

func TestString_isBounded(t *testing.T) {
	t.Parallel()
	for _, letter := range []string{"x", "語", "\n", "\xff", "😀"} {
		long := strings.Repeat(letter, 5000)
		a, b := lockkey.Of(long, "a"), lockkey.Of(long, "b")
		if n := utf8.RuneCountInString(a.String()); n > 160 {
			t.Errorf("%q…: %d characters", letter, n)
		}
		if !strings.Contains(a.String(), "…int64(") || a.String() == b.String() {
			t.Errorf("%s and %s do not tell the keys apart", a, b)
		}
		if !strings.HasSuffix(a.Name(), "/a") || a.Topic() != long {
			t.Errorf("Name or Topic of %s is cut", a)
		}
	}
	if s := lockkey.Of(strings.Repeat("x", 120)).String(); s != strings.Repeat("x", 120) {
		t.Errorf("a name at the bound is cut: %s", s)
	}
}

func TestTopic_isTheFirstPart(t *testing.T) {
	t.Parallel()
	for want, k := range map[string]lockkey.Key{
		"report":  lockkey.Of("report", 7),
		"a/b":     lockkey.Of("a/b", "c"),
		"42":      lockkey.Of(42),
		"a\x00:1": lockkey.Of("a\x00:1", ""),
		"":        lockkey.Int64(7),
	} {
		if got := k.Topic(); got != want {
			t.Errorf("%v: Topic %q, want %q", k, got, want)
		}
	}
}
