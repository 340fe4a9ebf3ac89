package lockkey_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/gormlock/gormlock/lockkey"
)

// list cuts raw into a part list and what each part counts as. A byte gives the
// length of a text (a quarter of it) or, when 3 remains, announces a number.
func list(raw []byte) (parts []any, texts []string) {
	for len(raw) > 0 {
		n := int(raw[0])
		raw = raw[1:]
		number := n%4 == 3 && len(raw) >= 8
		n = min(n/4, len(raw))
		if number {
			v := int64(binary.BigEndian.Uint64(raw[:8]))
			parts, raw = append(parts, v), raw[8:]
			texts = append(texts, decimal(v))
			continue
		}
		parts, texts = append(parts, string(raw[:n])), append(texts, string(raw[:n]))
		raw = raw[n:]
	}
	return parts, texts
}

func decimal(v int64) string {
	if v < 0 {
		return "-" + digits(-uint64(v))
	}
	return digits(uint64(v))
}

func digits(v uint64) string {
	if v < 10 {
		return string(rune('0' + v))
	}
	return digits(v/10) + string(rune('0'+v%10))
}

// FuzzOf checks that two part lists are one key when their texts are equal, and
// never otherwise: not by id, name or value.
func FuzzOf(f *testing.F) {
	f.Add([]byte{}, []byte{0})
	f.Add([]byte{4, 'a', 8, 'b', 'c'}, []byte{8, 'a', 'b', 4, 'c'})
	f.Add([]byte{0}, []byte{0, 0})
	f.Add([]byte{12, '1', ':', 'a'}, []byte{4, 'a'})
	f.Add([]byte{24, 'a', '1', ':', 'b', 0, 'c'}, []byte{4, 'a', 4, 'b'})
	f.Add([]byte{8, '4', '2'}, []byte{3, 0, 0, 0, 0, 0, 0, 0, 42})
	f.Fuzz(func(t *testing.T, rawA, rawB []byte) {
		partsA, textsA := list(rawA)
		partsB, textsB := list(rawB)
		a, b := lockkey.Of(partsA...), lockkey.Of(partsB...)
		for _, c := range []struct {
			k     lockkey.Key
			texts []string
		}{{a, textsA}, {b, textsB}} {
			if len(c.texts) == 0 {
				if !errors.Is(c.k.Err(), lockkey.ErrInvalid) {
					t.Fatalf("no parts: Err %v", c.k.Err())
				}
				continue
			}
			if c.k.Err() != nil || c.k.Topic() != c.texts[0] {
				t.Fatalf("%q: Err %v, Topic %q", c.texts, c.k.Err(), c.k.Topic())
			}
			checkPrintable(t, c.k.Name())
			checkPrintable(t, c.k.String())
		}
		same := slices.Equal(textsA, textsB)
		if (a == b) != same || (lockkey.Compare(a, b) == 0) != same || (a.Name() == b.Name()) != same {
			t.Fatalf("%q and %q: == %v, Compare %d, names %s and %s", textsA, textsB, a == b, lockkey.Compare(a, b), a.Name(), b.Name())
		}
	})
}

func checkPrintable(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Fatalf("%q is not printable", text)
	}
}
