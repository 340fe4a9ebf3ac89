package gormlock

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gormlock/gormlock/fence"
)

// FencedError says which write came from a holder that was superseded. It is [ErrFenced].
type FencedError struct {
	Table      string         // of the row; empty where no row was written: FenceTx
	Op         string         // create, update, save, delete, upsert, claim or touch; empty for FenceTx
	PrimaryKey map[string]any // by column; empty where the statement named no row, or wrote many
	Token      fence.Token    // the one of the write
	Latest     fence.Token    // the latest issued for its key, or, without a name, the one the row was written with; 0: the token itself was never issued

	keys   []string
	passed bool // some row has a later token, and which is not known
	cause  error
}

// Error names the row, the token of the write, and the one that refused it.
func (e *FencedError) Error() string {
	var b strings.Builder
	b.WriteString("gormlock: ")
	if e.Table != "" {
		b.WriteString(rowName(e.Table, e.keys, e.PrimaryKey))
		b.WriteString(": ")
	}
	switch {
	case e.passed:
		fmt.Fprintf(&b, "token %s is superseded, the row was written with a later one", e.Token)
	case e.Latest.IsZero():
		fmt.Fprintf(&b, "token %s was never issued in the table %s that the search_path finds", e.Token, fence.Table)
	case e.Latest.Name == "":
		fmt.Fprintf(&b, "token %s is superseded, the row was written with %d", e.Token, e.Latest.Number)
	default:
		fmt.Fprintf(&b, "token %s is superseded, %s has been issued", e.Token, e.Latest)
	}
	return b.String()
}

// Is makes a FencedError ErrFenced.
func (*FencedError) Is(target error) bool { return target == ErrFenced }

// Unwrap is what the server said, where it was the server that noticed.
func (e *FencedError) Unwrap() error { return e.cause }

// issued is token with the number of the latest issued for its key.
func issued(token fence.Token, number int64) fence.Token {
	token.Number = number
	return token
}

// The server says by a text that is no number which token refused a write: casting it fails, and the error quotes it.
const (
	issuedLater  = "gormlock: later token issued "
	writtenLater = "gormlock: later token written "
)

// refusalIn reads from an error of the server by which token a statement was refused.
func refusalIn(err error, token fence.Token) (latest fence.Token, refused bool) {
	if err == nil || sqlState(err) != "22P02" {
		return fence.Token{}, false
	}
	for _, text := range []string{issuedLater, writtenLater} {
		_, rest, found := strings.Cut(err.Error(), text)
		if !found {
			continue
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(rest)
		}
		number, _ := strconv.ParseInt(rest[:end], 10, 64)
		if text == issuedLater && number != 0 {
			return issued(token, number), true
		}
		return fence.Token{Number: number}, true
	}
	return fence.Token{}, false
}
