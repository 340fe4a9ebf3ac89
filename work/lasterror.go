package work

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// storable returns what PostgreSQL can store of a text, at most 16 kB.
func storable(text string) string {
	const most = 16 << 10
	text = strings.ReplaceAll(text, "\x00", "\\x00")
	if len(text) > most {
		text = text[:most]
	}
	return cmp.Or(strings.ToValidUTF8(text, "\uFFFD"), "an error without a text")
}

// lengths are the lengths, in letters, that are tried for a text that the server refuses. An index has room for some 2,700 bytes, and many columns
// for 255 letters. With length 0 LastError stays as it was.
var lengths = [...]int{2000, 255, 60, 0}

// writeLess stores an outcome whose text the server may have refused. If the encoding of the database lacks letters, it tries ASCII, otherwise the
// beginning of the text. The log has the rest.
func (e *engine) writeLess(ctx context.Context, o outcome, refusal error) (stored map[int64]bool, err error) {
	whole := o.text
	if sqlstate.Is(refusal, sqlstate.UntranslatableCharacter, sqlstate.CharacterNotInRepertoire) {
		quoted := strconv.QuoteToASCII(o.text)
		o.text = quoted[1 : len(quoted)-1]
		if stored, err = e.write(ctx, []outcome{o}); !sqlstate.IsOfARow(err) {
			return stored, err
		}
	}
	if !ofAValue(refusal) {
		return nil, refusal
	}
	text := o.text
	for _, most := range lengths {
		if utf8.RuneCountInString(text) <= most {
			continue
		}
		o.text = beginning(text, most)
		if stored, err = e.write(ctx, []outcome{o}); sqlstate.IsOfARow(err) {
			continue
		}
		if stored[o.id] {
			e.log(ctx, "gormlock: work: the server refuses the text of an error, so LastError of job %d of %s has %d letters of it: %v. The text: %s", o.id, e.t.name, most, refusal, whole)
		}
		return stored, err
	}
	return nil, refusal
}

// ofAValue reports whether the code of a refusal fits a bad text: it is too long, or breaks a constraint, or a trigger raises an error.
func ofAValue(err error) bool {
	return sqlstate.InClass(err, "22") || sqlstate.InClass(err, "23") || sqlstate.InClass(err, "54") || sqlstate.InClass(err, "P0")
}

// beginning returns the first letters of a text, at most most of them, ending with dots.
func beginning(text string, most int) string {
	const dots = "..."
	if most <= len(dots) {
		return ""
	}
	letters := []rune(text)
	return string(letters[:most-len(dots)]) + dots
}
