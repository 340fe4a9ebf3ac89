package wiretap

import "slices"

// Message types of the protocol, named as in its documentation. Client and server
// use some letters for different things.
const (
	msgBind         = 'B'
	msgClose        = 'C'
	msgCopyData     = 'd'
	msgCopyDone     = 'c'
	msgCopyFail     = 'f'
	msgDescribe     = 'D'
	msgExecute      = 'E'
	msgFlush        = 'H'
	msgFunctionCall = 'F'
	msgParse        = 'P'
	msgQuery        = 'Q'
	msgSync         = 'S'
	msgTerminate    = 'X'

	ansBindComplete    = '2'
	ansCloseComplete   = '3'
	ansCommandComplete = 'C'
	ansCopyInResponse  = 'G'
	ansEmptyQuery      = 'I'
	ansError           = 'E'
	ansNoData          = 'n'
	ansParseComplete   = '1'
	ansPortalSuspended = 's'
	ansReadyForQuery   = 'Z'
	ansRowDescription  = 'T'
)

// exchange follows one connection's requests and answers, to know when the client
// has nothing to wait for.
type exchange struct {
	waiting  []byte // types of the client's messages not answered yet, oldest first
	open     bool   // a round trip is going on
	last     byte   // type of the last message that the server does not ignore
	skipping bool   // after an error the server discards everything up to a Sync
	copying  bool   // a COPY begun by Execute, during which Sync and Flush count for nothing
	ahead    int64  // offset up to which the client had sent when the last round trip ended
}

// sent takes a message of the client that starts at offset in what it sent, and
// reports whether a round trip begins with it.
func (x *exchange) sent(kind byte, offset int64) (begins bool) {
	switch kind {
	case msgTerminate, msgCopyData:
		return false
	case msgCopyDone, msgCopyFail:
		x.copying = false
		if len(x.waiting) > 0 {
			x.waiting = append(x.waiting, msgCopyDone)
		}
		return false
	case msgSync, msgFlush:
		if x.copying || kind == msgFlush && !x.open {
			return false
		}
	}
	begins = !x.open && offset >= x.ahead
	x.open, x.last = true, kind
	if kind == msgSync {
		x.skipping = false
	}
	if !x.skipping {
		x.waiting = append(x.waiting, kind)
	}
	return begins
}

// answered takes a message of the server and reports whether the round trip ends with it.
func (x *exchange) answered(kind byte) (ends bool) {
	switch kind {
	case ansParseComplete:
		x.done(msgParse)
	case ansBindComplete:
		x.done(msgBind)
	case ansCloseComplete:
		x.done(msgClose)
	case ansNoData, ansRowDescription:
		x.done(msgDescribe)
	case ansCommandComplete, ansEmptyQuery, ansPortalSuspended:
		x.done(msgExecute)
	case ansCopyInResponse:
		x.copyIn()
	case ansError:
		x.failed()
	case ansReadyForQuery:
		x.ready()
	}
	// A Flush is answered when all before it is; the end of a COPY's data has no
	// answer of its own.
	for len(x.waiting) > 0 && (x.waiting[0] == msgFlush || x.waiting[0] == msgCopyDone) {
		x.waiting = x.waiting[1:]
	}
	if !x.open || len(x.waiting) > 0 || x.skipping || !asks(x.last) {
		return false
	}
	x.open = false
	return true
}

// asks reports whether the server must answer after a message of this type. Behind
// others it may answer, but the client that waits for it would wait for ever.
func asks(kind byte) bool {
	switch kind {
	case msgQuery, msgFunctionCall, msgSync, msgFlush:
		return true
	}
	return false
}

func (x *exchange) done(kind byte) {
	if len(x.waiting) > 0 && x.waiting[0] == kind {
		x.waiting = x.waiting[1:]
	}
}

// copyIn drops what the server ignores while it reads the data of a COPY: clients
// send a Sync or Flush right behind Execute without knowing that it is a COPY.
func (x *exchange) copyIn() {
	if len(x.waiting) == 0 || x.waiting[0] != msgExecute {
		return
	}
	end := slices.Index(x.waiting, msgCopyDone)
	x.copying = end < 0
	if x.copying {
		x.waiting = ignored(x.waiting)
	} else {
		x.waiting = append(ignored(x.waiting[:end]), x.waiting[end+1:]...)
	}
	x.last = x.waiting[len(x.waiting)-1]
}

func ignored(kinds []byte) []byte {
	return slices.DeleteFunc(slices.Clone(kinds), func(kind byte) bool { return kind == msgSync || kind == msgFlush })
}

// failed drops what the server discards after an error: all up to a Sync. A Query or
// FunctionCall is followed by ReadyForQuery of its own.
func (x *exchange) failed() {
	x.copying = false
	if len(x.waiting) == 0 || x.waiting[0] == msgQuery || x.waiting[0] == msgFunctionCall {
		return
	}
	sync := slices.Index(x.waiting, msgSync)
	x.skipping = sync < 0
	if x.skipping {
		sync = len(x.waiting)
	}
	x.waiting = x.waiting[sync:]
}

func (x *exchange) ready() {
	x.copying = false
	for i, kind := range x.waiting {
		if kind == msgSync || kind == msgQuery || kind == msgFunctionCall {
			x.waiting = x.waiting[i+1:]
			return
		}
	}
}
