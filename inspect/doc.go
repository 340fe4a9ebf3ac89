// Package inspect answers "it hangs, who holds the lock?".
//
// [Snapshot] shows every advisory lock of a database, every request that waits for a
// lock of any kind, and what those wait for: names, sessions, ages, and who blocks whom.
// [Tree] orders the waits by who is waited for.
//
// [Session.Doing] says in words what a session does, if it runs a statement of gormlock's
// own. A wait that looks like db used in place of tx has a [Lock.Hint].
//
// It reads system views and the tables of gormlock, changes nothing, and takes no lock
// that anybody else could wait for. [View.Unseen] lists what its role may not see.
//
// # Stability
//
// This package may still change before v1: names may move or go.
package inspect
