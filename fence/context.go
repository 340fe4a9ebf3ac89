package fence

import (
	"context"
	"slices"
)

type contextKey struct{}

// NewContext is ctx with the tokens added. A token replaces the one ctx carries
// for the same key; those of other keys stay.
func NewContext(ctx context.Context, tokens ...Token) context.Context {
	carried := FromContext(ctx)
	for _, t := range tokens {
		carried = slices.DeleteFunc(carried, t.SameKey)
		carried = append(carried, t)
	}
	return context.WithValue(ctx, contextKey{}, carried)
}

// FromContext returns the tokens ctx carries, one per key, in the order they were
// added. The slice is the caller's own.
func FromContext(ctx context.Context) []Token {
	carried, _ := ctx.Value(contextKey{}).([]Token)
	return slices.Clone(carried)
}

// ByTopic returns the tokens ctx carries for keys whose name begins with the part topic. It can return none, one or several,
// and the caller decides what that means.
func ByTopic(ctx context.Context, topic string) []Token {
	carried, _ := ctx.Value(contextKey{}).([]Token)
	var found []Token
	for _, t := range carried {
		if t.Topic == topic {
			found = append(found, t)
		}
	}
	return found
}
