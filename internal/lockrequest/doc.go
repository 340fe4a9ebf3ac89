// Package lockrequest turns a call for transaction-level advisory locks into SQL, and the server's answer into an error.
// Package advisory and the GORM doors of the root share it.
//
// [New] checks keys and options once and gives a [Request], which holds the locks in the one order in which every call
// takes them. [Request.Acquire] takes them in a transaction that is open. [Request.Opening] is for a transaction that
// begins with its locks.
package lockrequest
