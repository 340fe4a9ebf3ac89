// Package mark notices when GORM drops a clause of gormlock. GORM copies the conditions of one statement into another,
// as a group, a sub-query or those of a join, and leaves the clauses behind. So each clause puts a mark among the
// conditions, which is copied too. A statement removes the marks that it acts on. A mark that is still there when the
// statement is built makes it fail.
package mark
