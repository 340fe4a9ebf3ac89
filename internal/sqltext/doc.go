// Package sqltext reads in a text of SQL what it does to the transaction that it runs in: the commands that begin and end
// transactions and savepoints, and whether it may write. And it reads in a query how far its locking clause reaches ([ReachOf]).
//
// The text is read as PostgreSQL's own scanner reads it: comments, nested ones too, strings of all kinds, quoted names,
// dollar quotes, several statements in one text. A text has such a command where a statement begins with its word, and
// nowhere else, so what is found here and the command tags that the server answers with are the same. A text that can be
// read in two ways, by settings that a client does not see, says so ([Text.Unsure]).
package sqltext
