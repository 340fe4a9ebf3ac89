// Package mark notices when GORM drops a clause of gormlock. GORM copies the conditions of one statement into another,
// as a group, in a sub-query or in a join, and does not copy the clauses. So each clause puts a mark among the
// conditions, which is copied. A statement removes the marks that it acts on. A mark that is still there when the
// statement is built makes it fail.
package mark
