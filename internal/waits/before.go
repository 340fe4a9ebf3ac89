// Package waits is what the statement of a wait in slices says of the slices before: PostgreSQL knows only since when the
// last one waits.
package waits

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Before is a wait until its next slice. Zero: this is the first one.
type Before struct {
	Waited time.Duration
	Left   time.Duration // until whoever waits gives up; 0: never
}

// Comment is what stands behind the statement. It has no clock of its own: those of client and server may differ.
func (b Before) Comment() string {
	text := fmt.Sprintf(" -- has waited %d ms", max(1, b.Waited.Milliseconds()))
	if b.Left > 0 {
		text += fmt.Sprintf(", for %d ms more at most", max(1, b.Left.Milliseconds()))
	}
	return text
}

var comment = regexp.MustCompile(` -- has waited (\d{1,15}) ms(?:, for (\d{1,15}) ms more at most)?$`)

// Read is what the text of a statement says.
func Read(statement string) Before {
	found := comment.FindStringSubmatch(statement)
	if found == nil {
		return Before{}
	}
	return Before{Waited: milliseconds(found[1]), Left: milliseconds(found[2])}
}

func milliseconds(digits string) time.Duration {
	n, _ := strconv.ParseInt(digits, 10, 64) // without digits it is 0
	return time.Millisecond * time.Duration(min(n, 1<<40))
}
