// Package inspect answers "it hangs, who holds the lock?".
//
// [Snapshot] shows every advisory lock of a database, every request that waits for a
// lock of any kind, and what those wait for: names, sessions, ages, and who blocks whom.
// [Tree] orders the waits by who is waited for.
//
// It reads system views and the tables of gormlock, changes nothing, and takes no lock
// that anybody else could wait for. What the role it runs as may not see is said in
// [View.Unseen], not left out in silence.
package inspect
