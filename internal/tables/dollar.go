package tables

import (
	"fmt"
	"strings"
)

// DollarQuoted is a text in dollar quotes, which it cannot end: $$…$$, or with a tag where names in the text have the same
// characters.
func DollarQuoted(text string) string {
	tag := "$$"
	for n := 1; strings.Index(text+tag, tag) != len(text); n++ { // a $ at the end would be the first of $$
		tag = fmt.Sprintf("$q%d$", n)
	}
	return tag + text + tag
}
