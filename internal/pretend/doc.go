// Package pretend keeps advisory locks in the memory of the process, for tests on a database that has none. They exclude, queue
// and deadlock as those of PostgreSQL do. Processes exclude each other not at all.
//
// An owner stands for one transaction. What it holds it may take again; each grant is released on its own.
package pretend
