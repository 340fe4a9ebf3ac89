package sqltext

import "context"

// Own is a text that gormlock sends, with everything that reading the text would find out. It is the ctx of the call that sends the text.
type Own struct {
	context.Context
	Query    string // the text
	Text     Text   // what it does
	Answers  bool   // the sender reads the result
	Prepared Prepared
}

// Prepared is a prepared statement that can be executed in place of a part of a text. The zero value is none.
type Prepared struct {
	Name       string // unique
	Definition string // the SQL that prepares it
	Execute    string // the SQL that executes it

	Before, After string // sent before and after it, in the same message
	Undo          string // undoes Before if the statement has failed
}

type ownKey struct{}

// Value implements [context.Context].
func (o *Own) Value(key any) any {
	if key == (ownKey{}) {
		return o
	}
	return o.Context.Value(key)
}

// OwnIn returns the Own of a text that is sent with ctx, nil if the text is not gormlock's.
func OwnIn(ctx context.Context, query string) *Own {
	if own, _ := ctx.Value(ownKey{}).(*Own); own != nil && own.Query == query {
		return own
	}
	return nil
}
