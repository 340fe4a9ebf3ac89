// Package dial makes the connections of a session-lock manager: it looks whom it met, refuses a server on which a session
// lock would lie, and sets up the session so that nothing but its end takes the locks from it.
package dial
