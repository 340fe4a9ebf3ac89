// Package pretend keeps advisory locks in the memory of the process, for tests on a database without such locks. They exclude, queue and deadlock
// as those of PostgreSQL do. They do not exclude other processes.
//
// An owner stands for one transaction. It may take again what it holds; each grant is released separately.
package pretend
