package inspect

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gormlock/gormlock/inspect/internal/words"
	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/lockkey"
)

// Snapshot returns who holds which lock and who waits for whom, now, in the database that db leads to.
//
// It needs no privileges; Unseen lists what it may not see. It works on PostgreSQL 14 and newer, standbys included, and
// through transaction poolers. The statements of one snapshot run a few milliseconds apart, so a lock may name a session
// that is gone. On a database other than PostgreSQL the error is advisory.ErrNotPostgres.
//
// It takes one connection of db. When a program hangs, all of its connections may wait
// for locks: use a pool of its own to look at it.
func Snapshot(ctx context.Context, db *sql.DB, opts ...Option) (*View, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, errNilPool
	}
	if other := otherdb.Under(db); other != nil {
		return nil, other.Refusal("inspect", nil)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		if pool := db.Stats(); ctx.Err() != nil && pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
			err = fmt.Errorf("all %d connections of the pool are in use, give the inspector a pool of its own: %w", pool.InUse, err)
		}
		return nil, explain(err)
	}
	defer func() { _ = conn.Close() }() // back to the pool, which nothing can prevent
	r := &reader{conn: conn, config: c, names: map[lockid.ID]name{}, own: map[int]words.Statement{}, candidates: map[int][]candidate{}, tables: map[int][]string{}, held: map[string][][]string{}, view: &View{Locks: []Lock{}, Sessions: []*Session{}, Leases: []Lease{}, Schedules: []Schedule{}, Jobs: []JobQueue{}, Unseen: []string{}}}
	if err := r.within(ctx, r.read); err != nil {
		return nil, explain(err)
	}
	r.readTables(ctx)
	r.readJobs(ctx)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("gormlock: inspect: %w", err)
	}
	r.name()
	r.say()
	r.date()
	r.hint()
	return r.view, nil
}

// explain adds to the error of a look at the database.
func explain(err error) error {
	if other := otherdb.Said(err); other != nil {
		return other.Refusal("inspect", err)
	}
	return fmt.Errorf("gormlock: inspect: %w", err)
}

// reader makes one View.
type reader struct {
	conn    *sql.Conn
	config  *config
	view    *View
	facts   facts
	names   map[lockid.ID]name
	derived map[lockid.ID]lockkey.Key // see derivedKeys
	own     map[int]words.Statement   // statements of gormlock, by process

	candidates map[int][]candidate
	tables     map[int][]string      // the tables whose rows a process may be waiting for, if the locks do not say which
	held       map[string][][]string // by Thing, what others want of a held lock: see joint
}

// within runs read in a transaction that can neither write nor wait for long.
func (r *reader) within(ctx context.Context, read func(context.Context, *sql.Tx) error) error {
	tx, err := r.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	// The lock table may be larger than work_mem, and is read several times. Names are shown and compared without extra quotes, whatever the
	// server's settings quote.
	const bound = `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', '1s', true),
		set_config('jit', 'off', true), set_config('work_mem', '64MB', true), set_config('quote_all_identifiers', 'off', true)`
	if _, err := tx.ExecContext(ctx, bound, strconv.FormatInt(r.config.timeout.Milliseconds(), 10)); err != nil {
		return err
	}
	return read(ctx, tx)
}

func (r *reader) read(ctx context.Context, tx *sql.Tx) error {
	if err := r.readFacts(ctx, tx); err != nil {
		return err
	}
	if err := r.readLocks(ctx, tx); err != nil {
		return err
	}
	return r.readSessions(ctx, tx)
}

func (r *reader) readLocks(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, locksSQL, r.config.limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	sessions := map[int]*Session{}
	for rows.Next() {
		var (
			l                             Lock
			class, object, sub            int64
			relation, row, blockers, kind string
			candidates                    []byte
			since                         sql.NullTime
			s                             Session
		)
		err := rows.Scan(&l.Thing, &kind, &class, &object, &sub, &relation, &row, &candidates, &l.Mode, &l.Granted, &since, &l.Waiters,
			&s.PID, &s.Prepared, &s.InTransaction, &blockers,
			&r.view.Totals.Held, &r.view.Totals.Waiting, &r.view.Totals.Cut, &r.view.Server.Locks)
		if err != nil {
			return err
		}
		if kind == "" {
			continue // nothing is locked: this row only has the totals
		}
		l.Kind, l.Table, l.Row, l.Since = Kind(kind), relation, row, since.Time
		if l.Kind == Advisory {
			l.Space, l.ID = int16(sub), class<<32|object
			l.Mode = advisoryMode(l.Mode)
		}
		if l.Session = sessions[s.PID]; l.Session == nil || s.PID == 0 {
			l.Session = &s
			sessions[s.PID] = &s
			r.view.Sessions = append(r.view.Sessions, &s)
		}
		if !l.Granted {
			l.Blockers = pids(blockers)
			if err := r.suspect(s.PID, candidates); err != nil {
				return err
			}
		}
		r.view.Locks = append(r.view.Locks, l)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	r.view.Totals.Cut -= len(r.view.Locks)
	for _, l := range r.view.Locks {
		for _, pid := range l.Blockers {
			if sessions[pid] == nil {
				sessions[pid] = &Session{PID: pid}
				r.view.Sessions = append(r.view.Sessions, sessions[pid])
			}
		}
	}
	slices.SortFunc(r.view.Sessions, func(a, b *Session) int { return a.PID - b.PID })
	return nil
}

func advisoryMode(mode string) string {
	switch mode {
	case "ExclusiveLock":
		return "exclusive"
	case "ShareLock":
		return "shared"
	}
	return mode
}

func pids(text string) []int {
	var list []int
	for field := range strings.SplitSeq(text, ",") {
		if pid, err := strconv.Atoi(field); err == nil && !slices.Contains(list, pid) {
			list = append(list, pid)
		}
	}
	return list
}

// pidArray is a list as a PostgreSQL array.
func pidArray(list []int) string {
	var text strings.Builder
	for i, pid := range list {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(pid))
	}
	return "{" + text.String() + "}"
}

func (r *reader) readSessions(ctx context.Context, tx *sql.Tx) error {
	var list []int
	for _, s := range r.view.Sessions {
		list = append(list, s.PID)
	}
	rows, err := tx.QueryContext(ctx, sessionsSQL, pidArray(list))
	if err != nil {
		return err
	}
	defer rows.Close()
	for _, s := range r.view.Sessions {
		s.Gone = s.PID != 0
	}
	for rows.Next() {
		var pid int
		var s Session
		var started, began, since sql.NullTime
		if err := rows.Scan(&pid, &s.Application, &s.User, &s.Client, &s.State, &s.Query, &started, &began, &since, &s.Hidden); err != nil {
			return err
		}
		known := r.view.Session(pid)
		if known == nil {
			continue
		}
		s.PID, s.InTransaction, s.Blockers, s.Prepared = pid, known.InTransaction || began.Valid, known.Blockers, known.Prepared
		s.Started, s.Began, s.StateSince = started.Time, began.Time, since.Time
		s.Owner = owner(s.Application)
		r.narrow(pid, s.Query)
		if statement, ok := words.Read(s.Query); ok {
			r.own[pid] = statement
		}
		s.Query = firstRunes(s.Query, queryRunes)
		*known = s
	}
	if err := rows.Err(); err != nil {
		return err
	}
	r.complete()
	return nil
}

// queryRunes is how much of a query is kept. Of gormlock's own queries more is read, because the keys may come later in the text.
const queryRunes = 500

func firstRunes(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}

// owner is the owner of the session lock manager whose connections have this name.
func owner(application string) string {
	name, ok := strings.CutPrefix(application, "gormlock ")
	if !ok {
		return ""
	}
	return name
}

// complete adds to each lock what only its session knows.
func (r *reader) complete() {
	hidden := 0
	for _, s := range r.view.Sessions {
		if s.Hidden {
			hidden++
		}
	}
	if hidden > 0 {
		r.unseen("the state, query, address and times of %d sessions of other roles: GRANT pg_read_all_stats TO %s", hidden, r.view.Server.Role)
	}
	r.locate()
	r.backdate()
	for i := range r.view.Locks {
		l := &r.view.Locks[i]
		if l.Kind == Advisory {
			switch {
			case l.Prepared != "", l.Granted && l.PID == 0:
				l.Scope = TransactionScope
			case l.Granted && !l.InTransaction && !l.Gone, l.Owner != "":
				l.Scope = SessionScope
			}
		} else {
			l.Scope = TransactionScope
		}
	}
}

func (r *reader) unseen(format string, args ...any) {
	r.view.Unseen = append(r.view.Unseen, fmt.Sprintf(format, args...))
}

// facts are the answers on which the rest depends.
type facts struct {
	names, fence, lease, schedule bool // whether the table can be read
}

func (r *reader) readFacts(ctx context.Context, tx *sql.Tx) error {
	s := &r.view.Server
	var taken, started time.Time
	var missing, closed string
	err := tx.QueryRowContext(ctx, factsSQL).Scan(&taken, &s.Version, &s.Database, &s.Role, &s.Standby, &started, &s.Room,
		&r.facts.names, &r.facts.fence, &r.facts.lease, &r.facts.schedule, &missing, &closed)
	if err != nil {
		return err
	}
	r.view.Taken, s.Started = taken, started
	for table := range strings.FieldsSeq(missing) {
		r.unseen("the table %s: GRANT SELECT ON %s TO %s", table, table, s.Role)
	}
	return r.unseenSchemas(closed)
}

// unseenSchemas notes which tables are in a schema that the role may not use. closed is JSON: the schema of each table, or null for a table without
// one.
func (r *reader) unseenSchemas(closed string) error {
	var schemaOf map[string]*string
	if err := json.Unmarshal([]byte(closed), &schemaOf); err != nil {
		return err
	}
	tables := map[string][]string{}
	for table, schema := range schemaOf {
		if schema != nil {
			tables[*schema] = append(tables[*schema], table)
		}
	}
	for _, schema := range slices.Sorted(maps.Keys(tables)) {
		noun := "table"
		if slices.Sort(tables[schema]); len(tables[schema]) > 1 {
			noun = "tables"
		}
		r.unseen("the %s %s: GRANT USAGE ON SCHEMA %s TO %s", noun, strings.Join(tables[schema], ", "), schema, r.view.Server.Role)
	}
	return nil
}
