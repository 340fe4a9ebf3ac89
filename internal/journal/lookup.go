package journal

import (
	"strings"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// lookup holds the texts by which the transaction has set where names are looked up; empty: none. If two lookups are equal, a name means the
// same table in both.
type lookup struct {
	path, role, session string
}

// set follows a text. If the text alone does not say what it sets, for example because it has an argument, its number is kept instead.
func (l *lookup) set(text sqltext.Text, number string) {
	by := text.Setting
	if text.Sets&sqltext.Unclear != 0 || strings.ContainsAny(by, "$?") || len(text.Commands) > 0 {
		by = number
	}
	if text.Sets&sqltext.SearchPath != 0 {
		l.path = by
	}
	if text.Sets&sqltext.SessionUser != 0 { // some versions of the server reset the role with it
		l.session, l.role = l.role+"\n"+by, ""
	}
	if text.Sets&sqltext.Role != 0 {
		l.role = by
	}
}
