package lease

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/internal/tables"
)

// wanted says what a table must look like.
type wanted struct {
	table   string // quoted
	name    string // for people
	cure    string
	key     []string
	columns map[string]string // with their types; "" is any
}

var ownColumns = map[string]string{
	"space": "smallint", "id": "bigint", "name": "text", "holder": "text", "owner": "text", "data": "bytea",
	"acquired_at": "timestamp with time zone", "expires_at": "timestamp with time zone", "wanted": "boolean",
}

var shedlockColumns = map[string]string{
	"name": "", "locked_by": "",
	// With a time zone their values would depend on the zone of the session.
	"lock_until": "timestamp without time zone", "locked_at": "timestamp without time zone",
}

// checker finds out whether the leases of a manager can work with its server and tables.
type checker struct {
	*store
	config *config
}

// check asks the server whether it takes writes, and looks at both tables.
func (k *checker) check(ctx context.Context) error {
	var standby, readOnly bool
	_, err := k.query(ctx, `SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean`, nil, func(rows *sql.Rows) error {
		return rows.Scan(&standby, &readOnly)
	})
	switch other := otherdb.Said(err); {
	case other != nil:
		return other.Refusal("leases in "+k.config.tableName(), err)
	case err != nil:
		return fmt.Errorf("gormlock: leases: look at the server: %w", explain(err))
	case standby:
		return fmt.Errorf("%w: leases live on the primary, connect to it, with target_session_attrs=read-write where the address names several servers", ErrStandby)
	case readOnly:
		return fmt.Errorf("%w: default_transaction_read_only is on in the sessions of this pool", ErrReadOnly)
	}
	c := k.config
	leases := wanted{c.quotedTable(), c.tableName(), c.migration(), []string{"space", "id"}, ownColumns}
	if c.shedlock {
		leases.key, leases.columns = []string{"name"}, shedlockColumns
	}
	tokens := wanted{`"` + fence.Table + `"`, fence.Table, "lease.Migrate and fence.Migrate create it", []string{"space", "id"},
		map[string]string{"space": "smallint", "id": "bigint", "name": "text", "token": "bigint"}}
	columns, err := k.checkTable(ctx, leases)
	if err == nil {
		err = k.checkRoom(columns)
	}
	if err == nil {
		_, err = k.checkTable(ctx, tokens)
	}
	if err != nil {
		return err
	}
	// Other faults are only known to the server: row security, types, rules.
	for text, args := range map[string][]any{
		k.sql.acquireSlot:  append(k.acquireArgs(&request{}, claim{}), 1),
		k.sql.acquireAll:   k.acquireArgs(&request{}, claim{}),
		k.sql.acquire:      k.acquireArgs(&request{}, claim{}),
		k.sql.acquireFreed: k.acquireArgs(&request{}, claim{})[:6],
		k.sql.acquireMany:  k.acquireManyArgs(nil),
		k.sql.renew:        k.listArgs(nil),
		k.sql.releaseMany:  k.listArgs(nil),
	} {
		if text == "" {
			continue
		}
		if _, err := k.query(ctx, "EXPLAIN "+text, args, func(*sql.Rows) error { return nil }); err != nil {
			return fmt.Errorf("gormlock: leases in %s: %w", leases.name, explain(err))
		}
	}
	return nil
}

// column is a column of a table, as the catalog describes it.
type column struct {
	name, kind string
	room       int  // in characters; 0: unlimited
	given      bool // by the caller, the server or a default, so it may be left out
	missing    string
}

func (k *checker) checkTable(ctx context.Context, w wanted) ([]column, error) {
	refuse := func(format string, args ...any) ([]column, error) {
		return nil, fmt.Errorf("%w %s: %s", ErrTable, w.name, fmt.Sprintf(format, args...))
	}
	kind, unique, late, err := k.lookAtTable(ctx, w)
	switch {
	case err != nil:
		return nil, fmt.Errorf("gormlock: leases: look at table %s: %w", w.name, explain(err))
	case kind == "":
		return refuse("it does not exist: %s", w.cure)
	case kind == "u" || kind == "t":
		return refuse("it is unlogged or temporary: a crash or a failover empties it, and with it goes who holds what")
	case late:
		return refuse("a deferrable unique constraint is on (%s): the server refuses ON CONFLICT beside one, drop it", strings.Join(w.key, ", "))
	case !unique:
		return refuse("no unique index is on (%s), which keeps a key from having two holders", strings.Join(w.key, ", "))
	}
	columns, err := k.lookAtColumns(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("gormlock: leases: look at table %s: %w", w.name, explain(err))
	}
	var absent []string
	for name := range w.columns {
		if !slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
			absent = append(absent, name)
		}
	}
	if slices.Sort(absent); len(absent) > 0 {
		return refuse("it lacks the columns %s", strings.Join(absent, ", "))
	}
	for _, c := range columns {
		kind, ours := w.columns[c.name]
		switch {
		case !ours && !c.given:
			return refuse("its column %s is NOT NULL without a default, and nobody here knows what to write", c.name)
		case !ours:
		case kind != "" && kind != c.kind:
			return refuse("its column %s is %s, not %s", c.name, c.kind, kind)
		case c.missing != "":
			return refuse("this role lacks the privileges %s on its column %s: GRANT SELECT, INSERT, UPDATE ON %s", c.missing, c.name, w.name)
		}
	}
	return columns, nil
}

// checkRoom finds out how long names and owners may be in ShedLock's table.
func (k *checker) checkRoom(columns []column) error {
	if !k.config.shedlock {
		return nil
	}
	for _, c := range columns {
		switch c.name {
		case "name":
			k.room = c.room
		case "locked_by":
			if need := utf8.RuneCountInString(k.config.owner) + len(holderMark) + holderLength; c.room > 0 && need > c.room {
				return fmt.Errorf("%w %s: its column locked_by has room for %d characters, the Owner needs %d", ErrTable, k.config.tableName(), c.room, need)
			}
		}
	}
	return nil
}

// lookAtTable returns the relpersistence of a table ("" if there is none), and whether its key is unique: at once, and only at the
// end of the transaction.
func (k *checker) lookAtTable(ctx context.Context, w wanted) (kind string, unique, late bool, err error) {
	_, err = k.query(ctx, `SELECT c.relpersistence::text, coalesce(bool_or(i.indimmediate), false), coalesce(bool_or(NOT i.indimmediate), false)
		FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
			AND ARRAY(SELECT a.attname::text FROM pg_attribute a, unnest(i.indkey::smallint[]) WITH ORDINALITY k(n, at)
				WHERE a.attrelid = c.oid AND a.attnum = k.n AND k.at <= i.indnkeyatts ORDER BY 1) = $2::text::text[]
		WHERE c.oid = to_regclass($1::text) GROUP BY c.oid, c.relpersistence`,
		[]any{w.table, "{" + strings.Join(slices.Sorted(slices.Values(w.key)), ",") + "}"}, func(rows *sql.Rows) error {
			return rows.Scan(&kind, &unique, &late)
		})
	return kind, unique, late, err
}

// lookAtColumns reads the columns of a table.
func (k *checker) lookAtColumns(ctx context.Context, w wanted) (columns []column, err error) {
	_, err = k.query(ctx, `SELECT a.attname::text, `+tables.TypeName("NULL")+`,
			CASE WHEN a.atttypid IN ('varchar'::regtype, 'bpchar'::regtype) AND a.atttypmod > 4 THEN a.atttypmod - 4 ELSE 0 END,
			NOT a.attnotnull OR a.atthasdef OR a.attidentity <> '',
			ARRAY(SELECT p FROM unnest('{SELECT,INSERT,UPDATE}'::text[]) p
				WHERE NOT has_column_privilege(a.attrelid, a.attnum, p))::text
		FROM pg_attribute a WHERE a.attrelid = to_regclass($1::text) AND a.attnum > 0 AND NOT a.attisdropped`,
		[]any{w.table}, func(rows *sql.Rows) error {
			var c column
			if err := rows.Scan(&c.name, &c.kind, &c.room, &c.given, &c.missing); err != nil {
				return err
			}
			c.missing = strings.Trim(c.missing, "{}")
			columns = append(columns, c)
			return nil
		})
	return columns, err
}
