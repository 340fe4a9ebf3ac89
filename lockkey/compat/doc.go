// Package compat computes the advisory lock keys of other programs, so that
// your program and theirs exclude each other on a shared database.
//
// Each function is one program's scheme, byte for byte, quirks included: a
// repaired quirk would no longer exclude the program. The vectors in testdata
// were computed by the programs themselves.
//
// What all schemes have in common:
//
//   - A program locks in one of PostgreSQL's two key spaces, and a bigint whose
//     halves equal a pair is a different lock. The doc comments say which.
//   - None normalises Unicode: é in one code point and in two are two keys.
//   - Input the program itself could not have (invalid UTF-8 where its strings
//     are Unicode, a NUL where PostgreSQL computes the key, an impossible
//     database name) gives a Key whose Err wraps lockkey.ErrInvalid, because any
//     lock taken for it would exclude nobody.
//   - Most hash to 32 bits: among 77,000 names, a collision is as likely as not. Use lockkey.Of for locks that no other
//     program takes.
//
// The keys are named after their scheme, as in rails-migrator/app_test.
//
// # Stability
//
// This package may still change before v1: names may move or go.
// The keys that it computes do not change, because they are the keys of other programs.
package compat
