// Package xact takes the transaction-level advisory locks that a statement carries: in the transaction that runs it,
// before it, or together with the BEGIN of that transaction.
package xact
