// Package pgserver starts throw-away PostgreSQL servers.
//
// Start finds the binaries of an installation, makes a cluster in a directory of
// its own, starts it on a free port of 127.0.0.1 and returns when it answers. Stop
// ends it and removes the directory. A small process watches over each server and
// does the same when the program that started it ends without calling Stop, also
// when it was killed.
//
// The cluster is made for tests: everybody may log in, nothing is synced to disk,
// and a crash of the machine (not of the server) loses it. Its files lie in TMPDIR,
// or where that is not set in memory, if there is room for some servers.
//
// PostgreSQL refuses to run as root, so for root the server runs as the user
// postgres, or nobody where there is no such user.
package pgserver
