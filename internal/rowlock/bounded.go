package rowlock

import (
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
)

// Bounded runs ask, which locks rows of a table by SQL of its own and not by a query of GORM. It bounds the wait by the plugin's DefaultTimeout,
// as [Begin] and [End] do for queries. Without a DefaultTimeout it costs nothing.
func Bounded(db *gorm.DB, table string, ask func() error) error {
	plugin := install.Of(db)
	l := Lock{Strength: ForShare}.within(plugin.DefaultTimeout)
	if !l.mayFail() {
		return ask()
	}
	l.Began = plugin.Began()
	call := db.Session(&gorm.Session{NewDB: true}).Table(table)
	if l.begin(call, strings.Join(l.openTexts(), "; ")); call.Error != nil {
		return call.Error
	}
	call.Error = ask()
	if l.close(call); call.Error == nil {
		return nil
	}
	err := l.Verdict(call.Statement, call.Error)
	l.Tell(call.Statement.Context, plugin, table, 0, err)
	return err
}
