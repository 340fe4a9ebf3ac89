package sessionlock

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	at    int // the part whose answer is read
}

// part is one statement of a flight, and its answer.
type part struct {
	statement statement
	entries   []*entry
	again     bool // an unlock of what may not be held
	retries   int
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
func (f *flight) encode(buf []byte) ([]byte, error) {
	var err error
	add := func(m pgproto3.FrontendMessage) {
		if err == nil {
			buf, err = m.Encode(buf)
		}
	}
	for i := range f.parts {
		p := &f.parts[i]
		switch {
		case p.statement < beat:
			bind(add, p.statement.name(), binaryKeys(p.entries))
		case p.statement == issue:
			bind(add, issue.name(), p.tokenArgs()...)
		case p.statement == slice:
			e := p.entries[0]
			for _, sql := range sliceSQL(e.id, e.mode, p.limit) {
				add(&pgproto3.Parse{Query: sql})
				bind(add, "")
			}
		case p.statement == unlockAll:
			add(&pgproto3.Parse{Query: "SELECT pg_catalog.pg_advisory_unlock_all()"})
			bind(add, "")
		}
		add(&pgproto3.Sync{})
	}
	return buf, err
}

type param struct {
	format int16 // 0 text, 1 binary
	value  []byte
}

func bind(add func(pgproto3.FrontendMessage), name string, params ...param) {
	m := &pgproto3.Bind{PreparedStatement: name, ResultFormatCodes: []int16{1}}
	for _, p := range params {
		m.ParameterFormatCodes = append(m.ParameterFormatCodes, p.format)
		m.Parameters = append(m.Parameters, p.value)
	}
	add(m)
	add(&pgproto3.Execute{})
}

// binaryKeys is a bigint[] in PostgreSQL's binary form.
func binaryKeys(entries []*entry) param {
	const header, element, int8OID = 20, 12, 20
	b := make([]byte, header, header+element*len(entries))
	binary.BigEndian.PutUint32(b, 1)
	binary.BigEndian.PutUint32(b[8:], int8OID)
	binary.BigEndian.PutUint32(b[12:], uint32(len(entries)))
	binary.BigEndian.PutUint32(b[16:], 1)
	for _, e := range entries {
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(e.id.id))
	}
	return param{1, b}
}

func (p *part) tokenArgs() []param {
	tokens := make([]fence.Token, 0, len(p.issues))
	for _, is := range p.issues {
		tokens = append(tokens, is.token)
	}
	var params []param
	for _, text := range fence.BatchArgs(tokens) {
		params = append(params, param{0, []byte(text)})
	}
	return params
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
	case p.statement == issue:
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
