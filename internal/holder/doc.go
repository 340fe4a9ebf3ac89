// Package holder is what the holders of session locks and of leases have in common: the errors of a lock that was held, the options of both kinds,
// contexts that end with a lock, and the marks by which a context says what its holder has. Nothing here talks to a server, and nothing has its own
// mutex.
package holder
