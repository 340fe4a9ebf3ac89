package sqltext

import "context"

// Own is a text of our own, with what is known of it: nobody has to read it. It is the ctx that the text is sent with.
type Own struct {
	context.Context
	Query    string // the text
	Text     Text   // what it does
	Answers  bool   // whoever sends it reads the result
	Prepared Prepared
}

// Prepared is a statement that may be executed in the place of a part of a text. The zero value is none.
type Prepared struct {
	Name       string // which no other statement has
	Definition string // prepares it
	Execute    string // executes it

	Before, After string // what is sent around it, in the same message
	Undo          string // what takes Before back after the statement has failed
}

type ownKey struct{}

// Value implements [context.Context].
func (o *Own) Value(key any) any {
	if key == (ownKey{}) {
		return o
	}
	return o.Context.Value(key)
}

// OwnIn is what is known of a text that is sent with ctx, nil for a text that is not ours.
func OwnIn(ctx context.Context, query string) *Own {
	if own, _ := ctx.Value(ownKey{}).(*Own); own != nil && own.Query == query {
		return own
	}
	return nil
}
