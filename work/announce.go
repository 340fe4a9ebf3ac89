package work

import (
	"context"
	"database/sql"
	"encoding/json"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/pgarray"
)

const (
	// channel is where jobs are announced.
	channel = "gormlock_work"
	// between is the pause after a process has sent announcements. Announcements made during the pause are sent together.
	between = 3 * time.Millisecond
	// longest is the longest payload that PostgreSQL accepts, minus the text before it.
	longest = 7900
)

// level is a queue and a priority. Jobs of one level are ordered by ID.
type level struct {
	queue    string
	priority int
}

// hints say where there are new jobs: for each level, from which ID on. Without hints a worker looks everywhere.
type hints map[level]hint

type hint struct {
	from  int64
	later bool // its RunAt is in the future
}

func (h hints) add(l level, id int64, later bool) {
	known, ok := h[l]
	if !ok {
		known = hint{id, later}
	}
	h[l] = hint{min(known.from, id), known.later || later}
}

func (h hints) merge(others hints) {
	for l, other := range others {
		h.add(l, other.from, other.later)
	}
}

// hinted is a hint in a payload, as JSON.
type hinted struct {
	Queue    string `json:"q"`
	Priority int    `json:"p"`
	From     int64  `json:"i"`
	Later    bool   `json:"l,omitempty"`
}

func (h hints) payload() string {
	list := make([]hinted, 0, len(h))
	for l, hint := range h {
		list = append(list, hinted{l.queue, l.priority, hint.from, hint.later})
	}
	text, err := json.Marshal(list)
	if err != nil || len(text) > longest {
		return ""
	}
	return string(text)
}

// readHints returns nil for a payload without hints.
func readHints(payload string) hints {
	var list []hinted
	if json.Unmarshal([]byte(payload), &list) != nil {
		return nil
	}
	h := hints{}
	for _, each := range list {
		h.add(level{each.Queue, each.Priority}, each.From, each.Later)
	}
	return h
}

// announcements are the announcements that this process has still to send, by pool.
var announcements struct {
	sync.Mutex
	of map[*sql.DB]map[string]hints // by the quoted name of the table
}

// announce tells workers of new jobs, in the background and a moment later. A failed announcement is not repeated, because workers poll too.
//
// P32: a NOTIFY in the enqueuing transaction would make all commits of the database wait for each other.
func announce(db *sql.DB, table string, heard hints) {
	local.wake(db, table, heard)
	announcements.Lock()
	defer announcements.Unlock()
	tables, sending := announcements.of[db]
	if !sending {
		if announcements.of == nil {
			announcements.of = map[*sql.DB]map[string]hints{}
		}
		tables = map[string]hints{}
		announcements.of[db] = tables
		go sendAnnouncements(db)
	}
	if tables[table] == nil {
		tables[table] = hints{}
	}
	tables[table].merge(heard)
}

// sendAnnouncements sends until there are no further announcements.
func sendAnnouncements(db *sql.DB) {
	for {
		announcements.Lock()
		tables := announcements.of[db]
		if len(tables) == 0 {
			delete(announcements.of, db)
			announcements.Unlock()
			return
		}
		announcements.of[db] = map[string]hints{}
		announcements.Unlock()
		var names, payloads pgarray.Array
		for table, heard := range tables {
			names.Text(table)
			payloads.Text(heard.payload())
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, _ = db.ExecContext(ctx, "SELECT pg_notify('"+channel+"', concat(to_regclass(t)::oid, ' ', h)) FROM unnest($1::text[], $2::text[]) AS n(t, h)",
			names.String(), payloads.String())
		cancel()
		time.Sleep(between) //nolint:forbidigo // so many announcements become one
	}
}
