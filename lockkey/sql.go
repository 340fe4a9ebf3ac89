package lockkey

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// SQL is a PostgreSQL expression, for version 11 and newer, whose value is the
// id of Of(parts...): SELECT pg_advisory_xact_lock(<it>) takes the same lock.
// It fails with the key's error when the parts cannot name a lock.
func SQL(parts ...any) (string, error) {
	k := Of(parts...)
	if err := k.Err(); err != nil {
		return "", err
	}
	return fmt.Sprintf("('x' || encode(substr(sha256(%s), 1, 8), 'hex'))::bit(64)::bigint", bytea(k.text)), nil
}

// bytea is an expression for the bytes of encoding, readable where a string
// literal can hold them under every server setting.
func bytea(encoding string) string {
	if !utf8.ValidString(encoding) || strings.ContainsAny(encoding, "\x00\\") {
		return fmt.Sprintf("decode('%s', 'hex')", hex.EncodeToString([]byte(encoding)))
	}
	return fmt.Sprintf("convert_to('%s', 'UTF8')", strings.ReplaceAll(encoding, "'", "''"))
}
