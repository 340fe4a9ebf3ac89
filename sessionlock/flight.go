package sessionlock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/fence"
)

// flight is what one write carries: some statements, each with a Sync of its own, so
// that each succeeds or fails alone.
type flight struct {
	parts []part
	sent  time.Time
	keys  int // how many it carries
	at    int // the part whose answer is read
}

// part is one statement of a flight, and its answer.
type part struct {
	statement statement
	entries   []*entry
	again     bool // an unlock of what may not be held
	retries   int
	variant   statement // of a slice: see forLock
	limit     time.Duration
	issues    map[lockID]*issuing

	refused []lockID // the keys for which the function said no
	warned  bool     // a commit that was not waited for to the end
	err     *pgconn.PgError
}

const (
	maxKeys    = 4096 // of a flight: two of them fit into the socket's buffer, so a write never blocks
	maxRepairs = 64
	maxIssues  = 1024
)

// encode appends the flight's messages to buf.
func (f *flight) encode(buf []byte) []byte {
	for i := range f.parts {
		p := &f.parts[i]
		switch {
		case p.statement < beat:
			buf = appendKeys(buf, p.statement.name(), p.entries)
		case p.issues != nil:
			buf = appendBind(buf, p.statement.name(), p.tokenArgs()...)
		case p.statement == slice:
			names, key := waitNames[p.variant], strconv.FormatInt(p.entries[0].id.id, 10)
			buf = appendBind(buf, limitName, strconv.FormatInt(max(1, p.limit.Milliseconds()), 10))
			buf = appendBind(buf, names[0], key)
			buf = appendBind(buf, names[1], key)
		case p.statement == unlockAll:
			buf = appendBind(appendParse(buf, "SELECT pg_catalog.pg_advisory_unlock_all()"), "")
		}
		buf = append(buf, 'S', 0, 0, 0, 4) // Sync
	}
	return buf
}

// appendParse prepares the unnamed statement.
func appendParse(buf []byte, sql string) []byte {
	buf, at := begin(buf, 'P')
	buf = append(buf, 0)
	buf = append(buf, sql...)
	return end(append(buf, 0, 0, 0), at)
}

// appendBind executes a statement with parameters in text form. The rows are in binary
// form.
func appendBind(buf []byte, name string, params ...string) []byte {
	buf, at := begin(buf, 'B')
	buf = append(buf, 0)
	buf = append(append(buf, name...), 0)
	buf = append(buf, 0, 0)
	buf = binary.BigEndian.AppendUint16(buf, uint16(len(params)))
	for _, p := range params {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(p)))
		buf = append(buf, p...)
	}
	return appendExecute(end(append(buf, 0, 1, 0, 1), at))
}

// appendKeys executes a statement with one parameter, a bigint[] in binary form.
func appendKeys(buf []byte, name string, entries []*entry) []byte {
	const header, element, int8OID = 20, 12, 20
	buf, at := begin(buf, 'B')
	buf = append(buf, 0)
	buf = append(append(buf, name...), 0)
	buf = append(buf, 0, 1, 0, 1, 0, 1) // all parameters in binary form, and there is one
	buf = binary.BigEndian.AppendUint32(buf, uint32(header+element*len(entries)))
	for _, word := range [...]uint32{1, 0, int8OID, uint32(len(entries)), 1} {
		buf = binary.BigEndian.AppendUint32(buf, word)
	}
	for _, e := range entries {
		buf = binary.BigEndian.AppendUint32(buf, 8)
		buf = binary.BigEndian.AppendUint64(buf, uint64(e.id.id))
	}
	return appendExecute(end(append(buf, 0, 1, 0, 1), at))
}

func appendExecute(buf []byte) []byte {
	return append(buf, 'E', 0, 0, 0, 9, 0, 0, 0, 0, 0)
}

// begin appends the head of a message, end fills in its length.
func begin(buf []byte, kind byte) ([]byte, int) {
	return append(buf, kind, 0, 0, 0, 0), len(buf) + 1
}

func end(buf []byte, at int) []byte {
	binary.BigEndian.PutUint32(buf[at:], uint32(len(buf)-at))
	return buf
}

func (p *part) tokenArgs() []string {
	tokens := make([]fence.Token, 0, len(p.issues))
	for _, is := range p.issues {
		tokens = append(tokens, is.token)
	}
	args := fence.BatchArgs(tokens)
	return args[:]
}

// take reads one message of the answer and says whether it was the last.
func (f *flight) take(message pgproto3.BackendMessage) (done bool, err error) {
	if f.at >= len(f.parts) {
		return true, fmt.Errorf("an answer to nothing: %T", message)
	}
	p := &f.parts[f.at]
	switch m := message.(type) {
	case *pgproto3.DataRow:
		return false, p.row(m.Values)
	case *pgproto3.ErrorResponse:
		p.err = pgconn.ErrorResponseToPgError(m)
	case *pgproto3.NoticeResponse:
		p.warned = p.warned || m.SeverityUnlocalized == "WARNING"
	case *pgproto3.ReadyForQuery:
		f.at++
	}
	return f.at == len(f.parts), nil
}

var errRow = errors.New("a row that was not asked for")

func (p *part) row(values [][]byte) error {
	switch {
	case p.statement < beat:
		if len(values) != 1 || len(values[0]) != 8 {
			return errRow
		}
		pair := p.statement%try >= 2
		p.refused = append(p.refused, lockID{pair, int64(binary.BigEndian.Uint64(values[0]))})
	case p.issues != nil:
		if len(values) != 3 || len(values[0]) != 2 || len(values[1]) != 8 || len(values[2]) != 8 {
			return errRow
		}
		space, id := int16(binary.BigEndian.Uint16(values[0])), int64(binary.BigEndian.Uint64(values[1]))
		if is := p.issues[lockID{space == 2, id}]; is != nil {
			is.number = int64(binary.BigEndian.Uint64(values[2]))
		}
	}
	return nil
}
