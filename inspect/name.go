package inspect

import (
	"fmt"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// name is a name of a key and who gave it.
type name struct {
	text, source string
	scope        Scope // for what gormlock took it last
}

// name gives each lock the best name there is: that of the caller, of gormlock's tables,
// of tools that have a fixed key, of tools that make one from the name of the database.
func (r *reader) name() {
	derived := derivedKeys(r.view.Server.Database)
	for i := range r.view.Locks {
		l := &r.view.Locks[i]
		if l.Kind != Advisory {
			l.Key = place(l)
			continue
		}
		id := lockID{l.Space, l.ID}
		key := id.key()
		l.Key = key.String()
		if l.Scope == "" {
			l.Scope = r.names[id].scope
		}
		if k, ok := r.config.known[id]; ok && k.Name() != "" {
			l.Key, l.Name, l.Source = k.String(), k.Name(), "known"
		} else if n, ok := r.names[id]; ok {
			l.Key, l.Name, l.Source = n.text, n.text, n.source
		} else if tool, ok := compat.Reserved(key); ok {
			l.Key, l.Name, l.Source = tool, tool, "reserved"
		} else if k, ok := derived[id]; ok {
			l.Key, l.Name, l.Source = k.String(), k.Name(), "scheme"
		}
	}
}

// derivedKeys are the keys that migration tools take in a database of this name, with
// the tables that they use by default.
func derivedKeys(database string) map[lockID]lockkey.Key {
	keys := map[lockID]lockkey.Key{}
	for _, k := range []lockkey.Key{
		compat.RailsMigrator(database),
		compat.Sqlx(database),
		compat.GolangMigrate(database, "public", "schema_migrations"),
		compat.GolangMigrate(database),
		compat.Flyway("public", "flyway_schema_history"),
	} {
		if k.Err() == nil {
			keys[idOf(k)] = k
		}
	}
	return keys
}

// place is what a lock that is no advisory one is on, for people.
func place(l *Lock) string {
	switch {
	case l.Table != "" && l.Row != "":
		return fmt.Sprintf("row %s of %s", l.Row, l.Table)
	case l.Table != "" && l.Kind == Transaction:
		return "a row of " + l.Table
	case l.Table != "":
		return "table " + l.Table
	case l.Kind == Transaction:
		return "a transaction's rows"
	}
	return string(l.Kind)
}
