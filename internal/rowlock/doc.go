// Package rowlock locks the rows that a query reads: strengths, waits, and the refusal of queries whose rows PostgreSQL
// cannot lock.
package rowlock
