package tables

import (
	"fmt"
	"strings"
)

// DollarQuoted is a text in dollar quotes: $$…$$, or with a tag if the text itself contains the quote.
func DollarQuoted(text string) string {
	tag := "$$"
	for n := 1; strings.Index(text+tag, tag) != len(text); n++ { // a $ at the end of the text would begin $$
		tag = fmt.Sprintf("$q%d$", n)
	}
	return tag + text + tag
}
