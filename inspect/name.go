package inspect

import (
	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// name is a name of a key, and where it comes from.
type name struct {
	text, source string
	scope        Scope // the scope in which gormlock last took it
}

// name gives each lock the best name there is.
func (r *reader) name() {
	for i := range r.view.Locks {
		l := &r.view.Locks[i]
		if l.Kind != Advisory {
			l.Key = r.place(l)
			continue
		}
		id := lockid.ID{Space: l.Space, ID: l.ID}
		if l.Scope == "" {
			l.Scope = r.names[id].scope
		}
		l.Key, l.Name, l.Source = r.nameOf(id)
	}
}

// nameOf is a key for people, its name if it has one, and the source of the name: the caller, gormlock's tables, tools with a fixed key, or tools
// that derive one from the name of the database.
func (r *reader) nameOf(id lockid.ID) (key, named, source string) {
	if r.derived == nil {
		r.derived = derivedKeys(r.view.Server.Database)
	}
	if k, ok := r.config.known[id]; ok && k.Name() != "" {
		return k.String(), k.Name(), "known"
	}
	if n, ok := r.names[id]; ok {
		return n.text, n.text, n.source
	}
	if tool, ok := compat.Reserved(id.Key()); ok {
		return tool, tool, "reserved"
	}
	if k, ok := r.derived[id]; ok {
		return k.String(), k.Name(), "scheme"
	}
	return id.Key().String(), "", ""
}

// say puts into words what sessions do that run a statement of gormlock's own.
func (r *reader) say() {
	waits := map[int]string{} // the advisory keys that are waited for
	for _, l := range r.view.Locks {
		if !l.Granted && l.Kind == Advisory {
			waits[l.PID] = l.Key
		}
	}
	for pid, statement := range r.own {
		s := r.view.Session(pid)
		s.Doing = statement.Say(s.State == "active", func(k lockkey.Key) string {
			id, ok := lockid.Of(k)
			if !ok {
				return k.String()
			}
			key, _, _ := r.nameOf(id)
			return key
		}, waits[pid])
	}
}

// derivedKeys are the keys that migration tools take in a database of this name, with
// the tables that they use by default.
func derivedKeys(database string) map[lockid.ID]lockkey.Key {
	keys := map[lockid.ID]lockkey.Key{}
	for _, k := range []lockkey.Key{
		compat.RailsMigrator(database),
		compat.Sqlx(database),
		compat.GolangMigrate(database, "public", "schema_migrations"),
		compat.GolangMigrate(database),
		compat.Flyway("public", "flyway_schema_history"),
	} {
		if id, ok := lockid.Of(k); ok {
			keys[id] = k
		}
	}
	return keys
}
