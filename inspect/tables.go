package inspect

import (
	"context"
	"database/sql"
	"fmt"
)

// readTables reads what gormlock keeps in tables. One that cannot be read hides what is
// in it and nothing else.
func (r *reader) readTables(ctx context.Context) {
	r.names = map[lockID]name{}
	for _, t := range []struct {
		name string
		is   bool
		read func(context.Context, *sql.Tx) error
	}{
		{"gormlock_fence", r.facts.fence, r.readTokens},
		{"gormlock_key_name", r.facts.names, r.readNames},
		{"gormlock_lease", r.facts.lease, r.readLeases},
	} {
		if !t.is {
			continue
		}
		if err := r.within(ctx, t.read); err != nil {
			r.unseen("the table %s: %v", t.name, err)
		}
	}
}

func (r *reader) readTokens(context.Context, *sql.Tx) error { return nil }
func (r *reader) readNames(context.Context, *sql.Tx) error  { return nil }
func (r *reader) readLeases(context.Context, *sql.Tx) error { return nil }

// name gives each lock the best name there is.
func (r *reader) name() {
	for i := range r.view.Locks {
		l := &r.view.Locks[i]
		if l.Kind != Advisory {
			l.Key = place(l)
			continue
		}
		id := lockID{l.Space, l.ID}
		l.Key = id.key().String()
		if k, ok := r.config.known[id]; ok && k.Name() != "" {
			l.Key, l.Name, l.Source = k.String(), k.Name(), "known"
		} else if n, ok := r.names[id]; ok {
			l.Key, l.Name, l.Source = n.text, n.text, n.source
		}
	}
}

func place(l *Lock) string {
	switch {
	case l.Table != "" && l.Row != "":
		return fmt.Sprintf("row %s of %s", l.Row, l.Table)
	case l.Table != "":
		return "table " + l.Table
	}
	return string(l.Kind)
}
