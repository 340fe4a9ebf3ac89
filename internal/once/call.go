package once

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

// longestKey is how many bytes a key can have. It fits the index with room to spare.
const longestKey = 1024

// New returns a call for a key, or an error if the key cannot be stored.
func New(tx *gorm.DB, key string) (*Call, error) {
	if err := install.Usable(tx); err != nil {
		return nil, err
	}
	switch {
	case key == "":
		return nil, fmt.Errorf("%w: once: an empty key", fault.ErrOption)
	case len(key) > longestKey:
		return nil, fmt.Errorf("%w: once: the key has %d bytes, at most %d are allowed", fault.ErrOption, len(key), longestKey)
	case !utf8.ValidString(key) || strings.ContainsRune(key, 0):
		return nil, fmt.Errorf("%w: once %q: the key is not text that PostgreSQL can store", fault.ErrOption, key)
	}
	return &Call{Key: key}, nil
}

// Enter makes the call run in the transaction tx.
func (o *Call) Enter(tx *gorm.DB) error {
	if !statement.IsPostgres(tx) {
		return fmt.Errorf("%w, not %s: once %q", fault.ErrNotPostgres, tx.Name(), o.Key)
	}
	o.Session = statement.Session(tx, gorm.Session{})
	if tx.DryRun {
		return nil
	}
	open, ok := statement.Unprepared(tx.Statement.ConnPool).(transaction)
	if !ok {
		return fmt.Errorf("%w: once %q", fault.ErrNoTransaction, o.Key)
	}
	o.tx = open
	return nil
}

// MadeFor sets the request to compare, as a SHA-256: of its bytes, or of the JSON of any other value. JSON that does not hold the
// whole request is an error, because the rest would not be compared. A text that is not UTF-8 counts as its bytes.
func (o *Call) MadeFor(request any) error {
	if absent.Is(request) {
		return fmt.Errorf("%w: ForRequest of %s, leave it out to compare nothing", fault.ErrOption, absent.Type(request))
	}
	_, marshals := request.(json.Marshaler)
	if _, reads := request.(io.Reader); reads && !marshals {
		return fmt.Errorf("%w: ForRequest of a %T: read it, and give ForRequest the bytes", fault.ErrOption, request)
	}
	text, raw := request.([]byte)
	if written, is := request.(string); is && !utf8.ValidString(written) {
		text, raw = []byte(written), true
	}
	if !raw {
		var lost string
		var err error
		switch text, lost, err = asJSON(request); {
		case err != nil:
			return fmt.Errorf("gormlock: once %q: the request cannot be compared: %w", o.Key, err)
		case lost != "":
			return fmt.Errorf("%w: once %q: the request cannot be compared: %s", fault.ErrOption, o.Key, lost)
		}
	}
	sum := sha256.Sum256(text)
	o.Request = sum[:]
	return nil
}
