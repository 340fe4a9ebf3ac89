package journal

import (
	"strings"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// lookup are the texts that have set where names are looked up, empty where none has in the transaction. If two are equal, a name stands for
// the same table.
type lookup struct {
	path, role, session string
}

// set follows a text. Where it does not tell by itself what it sets, as by an argument, the number of the text stands for it.
func (l *lookup) set(text sqltext.Text, number string) {
	by := text.Setting
	if text.Sets&sqltext.Unclear != 0 || strings.ContainsAny(by, "$?") || len(text.Commands) > 0 {
		by = number
	}
	if text.Sets&sqltext.SearchPath != 0 {
		l.path = by
	}
	if text.Sets&sqltext.SessionUser != 0 { // some versions of the server take the role back with it
		l.session, l.role = l.role+"\n"+by, ""
	}
	if text.Sets&sqltext.Role != 0 {
		l.role = by
	}
}
