// Package wire is how a session of a session-lock manager talks to the server: the statements, the messages that execute
// them, and the connection that carries both. It does not know who asks, or why.
package wire
