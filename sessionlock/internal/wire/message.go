package wire

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/waits"
)

// Messages are those of one write.
type Messages struct {
	buf  []byte
	list []byte // the keys of a statement
	err  error
}

// Placed is a key in a list.
type Placed interface{ Place() holder.Place }

// AddListed executes a statement that takes a list of keys.
func AddListed[K Placed](m *Messages, s Statement, keys []K) {
	const int8OID = 20
	m.list = m.list[:0]
	for _, word := range [...]uint32{1, 0, int8OID, uint32(len(keys)), 1} { // a bigint[] of one dimension, in binary form
		m.list = binary.BigEndian.AppendUint32(m.list, word)
	}
	for _, k := range keys {
		m.list = binary.BigEndian.AppendUint32(m.list, 8)
		m.list = binary.BigEndian.AppendUint64(m.list, uint64(k.Place().ID))
	}
	m.execute(pgproto3.Bind{PreparedStatement: s.name(), ParameterFormatCodes: binaryFormat, Parameters: [][]byte{m.list}})
}

// AddWait waits for a lock, no longer than limit. variant is that of [Unlock]. A wait that goes on one from before says so
// in its text, for those who look at the server.
func (m *Messages) AddWait(variant Statement, at holder.Place, limit time.Duration, before waits.Before) {
	key := strconv.FormatInt(at.ID, 10)
	m.addText(limitName, strconv.FormatInt(max(1, limit.Milliseconds()), 10))
	name := waitNames[variant][0]
	if before.Waited > 0 {
		name = ""
		m.add((&pgproto3.Parse{Query: waitSQL(int(variant)) + before.Comment()}).Encode(m.buf))
	}
	m.addText(name, key)
	m.addText(waitNames[variant][1], key)
}

// AddIssue issues tokens.
func (m *Messages) AddIssue(s Statement, args [3]string) { m.addText(s.name(), args[:]...) }

// AddUnlockAll gives back everything that the session holds.
func (m *Messages) AddUnlockAll() {
	m.add((&pgproto3.Parse{Query: "SELECT pg_catalog.pg_advisory_unlock_all()"}).Encode(m.buf))
	m.addText("")
}

// AddSync ends a statement: it succeeds or fails alone, and is answered.
func (m *Messages) AddSync() { m.add((&pgproto3.Sync{}).Encode(m.buf)) }

// addText executes a prepared statement with parameters in text form.
func (m *Messages) addText(name string, params ...string) {
	values := make([][]byte, len(params))
	for i, p := range params {
		values[i] = []byte(p)
	}
	m.execute(pgproto3.Bind{PreparedStatement: name, Parameters: values})
}

// binaryFormat means that all parameters, or all columns, are in binary form.
var binaryFormat = []int16{1}

func (m *Messages) execute(b pgproto3.Bind) {
	b.ResultFormatCodes = binaryFormat
	m.add(b.Encode(m.buf))
	m.add((&pgproto3.Execute{}).Encode(m.buf))
}

// add appends a message to the buffer. A message that cannot be encoded fails the write.
func (m *Messages) add(buf []byte, err error) {
	if err != nil {
		m.err = err
		return
	}
	m.buf = buf
}
