// Package mark keeps an intent that a clause leaves on a statement from being lost. GORM takes the conditions of one
// statement into another, as a group, a sub-query or those of a join, and leaves the clauses behind. So each clause leaves
// a mark among the conditions, which goes along: a statement takes away the marks that it heeds, and a mark that is still
// there when the statement is built refuses it.
package mark
