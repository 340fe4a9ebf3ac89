package fence

import (
	"fmt"
)

// Guard is a condition for the WHERE of an UPDATE or DELETE. It is true until a
// later token of the key is issued. It uses the three parameters from $first on,
// which are [Token.Args].
func (t Token) Guard(first int) string {
	return fmt.Sprintf("NOT EXISTS (SELECT 1 FROM "+Table+
		" WHERE space = $%d::smallint AND id = $%d::bigint AND token > $%d::bigint)", first, first+1, first+2)
}

// Value is an expression for the token column of an INSERT. It is the token, or
// NULL once a later one has been issued, which a NOT NULL column refuses. A later
// token waits until the transaction has ended. It uses the three parameters from
// $first on, which are [Token.Args].
func (t Token) Value(first int) string {
	return fmt.Sprintf("(SELECT $%[3]d::bigint FROM "+Table+
		" WHERE space = $%[1]d::smallint AND id = $%[2]d::bigint AND token <= $%[3]d::bigint FOR SHARE)", first, first+1, first+2)
}

// Args are the parameters of [Token.Guard] and [Token.Value].
func (t Token) Args() []any {
	return []any{t.Space, t.ID, t.Number}
}
