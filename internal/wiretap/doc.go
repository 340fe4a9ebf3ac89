// Package wiretap is a loopback proxy for PostgreSQL connections that counts round
// trips, lists the statements that went through, and disturbs connections.
//
// A round trip is one transmission that the client waits for. It begins with the
// first message the client sends while nothing it sent before is unanswered, and it
// ends when everything is answered: each Query and Sync by its ReadyForQuery, each
// Flush by the answers to what was sent before it. Requests sent ahead of the
// answers to earlier ones belong to the same round trip, a COPY is one whatever its
// data. Opening and closing a connection and cancelling a request are not counted.
//
// The proxy reads the protocol, so it offers no encryption: a client that asks for
// it is told there is none.
package wiretap
