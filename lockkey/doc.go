// Package lockkey turns names into PostgreSQL advisory lock ids.
//
// PostgreSQL has two key spaces that never meet: one bigint, or two int4. A
// [Key] is an id in one of them plus a name for people. [Of] derives a bigint
// from any parts, [Int64] and [Pair] take ids that are already numbers, and
// package compat derives them by the rules of other programs.
//
// # Reproducing Of elsewhere
//
// Each part becomes its bytes: a string as it is, an integer as its decimal
// text. Each part is written as its length in bytes, a colon and the bytes, one
// after the other: Of("invoice", 42) writes
//
//	7:invoice2:42
//
// The id is the first 8 bytes of the SHA-256 of that, read as a big-endian
// signed integer. In PostgreSQL 11 or newer:
//
//	SELECT ('x' || encode(substr(sha256(convert_to('7:invoice2:42', 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;
//
// A part that no PostgreSQL text can hold (a NUL byte, invalid UTF-8) is written as bytes: decode('333a610062', 'hex') in
// place of the convert_to is Of("a\x00b"). [SQL] returns the expression for given parts. If the parts are columns of a
// query, write each part p as
//
//	octet_length(convert_to(p::text, 'UTF8')) || ':' || p
//
// In Python:
//
//	parts = [str(p).encode() for p in ("invoice", 42)]
//	digest = hashlib.sha256(b"".join(b"%d:%s" % (len(p), p) for p in parts)).digest()
//	key = int.from_bytes(digest[:8], "big", signed=True)
//
// # What it does not guarantee
//
// Two names can share an id: among five billion names that is as likely as not. Such names exclude each other, and nothing
// worse happens. Keys that other programs choose by hand live in the same space; compat.Reserved knows the fixed ones.
// Unicode is not normalised: é in one code point and in two are two keys.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package lockkey
