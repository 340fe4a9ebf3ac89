// Package sqltext finds out what a text of SQL does to its transaction: the commands in it that begin and end transactions
// and savepoints, and whether it may write. It also finds out which rows the locking clause of a query locks ([ReachOf]).
//
// It reads a text as PostgreSQL's own scanner does: comments, nested ones too, strings of all kinds, quoted names,
// dollar quotes, several statements in one text. A transaction command counts only where a statement begins with its
// word. So the commands found here match the command tags in the server's answer. If settings that a client does not see
// decide how a text is read, [Text.Unsure] says so.
package sqltext
