// Package reading knows what a query has read: which structs, forms, maps and single values hold the version of a row, of which model, and whether
// the caller's transaction may have written that row before. After a rollback they count as not read. If a rollback would not reach them, they
// count as not read at once. A query that GORM would read into the wrong place is refused.
package reading
