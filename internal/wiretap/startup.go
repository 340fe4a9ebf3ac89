package wiretap

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Codes in place of a protocol version in the first message of a connection.
const (
	cancelCode = 80877102
	sslCode    = 80877103
	gssCode    = 80877104
)

// startup passes on the first message of a connection, which has no type, and tells
// whether it opened a session. Encryption is declined here.
func (l *link) startup(r *bufio.Reader, w *bufio.Writer) (session bool, err error) {
	for {
		head, err := r.Peek(8)
		if err != nil {
			return false, err
		}
		size, code := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
		if size < 8 || size > 10_000 {
			return false, fmt.Errorf("%w: first message of %d bytes", errProtocol, size)
		}
		raw := make([]byte, size)
		if _, err := io.ReadFull(r, raw); err != nil {
			return false, err
		}
		l.mu.Lock()
		l.parsed += int64(size)
		l.mu.Unlock()
		switch code {
		case sslCode, gssCode:
			if _, err := (gate{l, toClient}).Write([]byte{'N'}); err != nil {
				return false, err
			}
			continue
		case cancelCode:
			_, err := w.Write(raw)
			return false, err
		}
		l.proxy.set(func() {
			l.session = true
			l.proxy.opened++
		})
		_, err = w.Write(raw)
		return true, err
	}
}
