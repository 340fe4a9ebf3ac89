package guard

import (
	"strconv"
	"strings"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// Issued is token with the number of the latest token of its key.
func Issued(token fence.Token, number int64) fence.Token {
	token.Number = number
	return token
}

// If the server refuses a write, it casts a text that is not a number, which fails, and the error quotes the text. The text says which token was
// refused.
const (
	issuedLater  = "gormlock: later token issued "
	writtenLater = "gormlock: later token written "
)

// refusalIn reads from an error of the server which token was refused.
func refusalIn(err error, token fence.Token) (latest fence.Token, refused bool) {
	if err == nil || sqlstate.Of(err) != sqlstate.InvalidTextRepresentation {
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
		switch {
		case text == issuedLater && number < token.Number:
			return fence.Token{}, true // the token was never issued, or its issuing was rolled back
		case text == issuedLater:
			return Issued(token, number), true
		}
		return fence.Token{Number: number}, true
	}
	return fence.Token{}, false
}
