// Package migrate changes the schema: the models of the application, one process at a time and all or nothing, and the tables
// of gormlock itself.
package migrate
