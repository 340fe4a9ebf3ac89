package statement

// Using is the clause by which Use of GORM's dbresolver names a database. It is no part of a statement.
const Using = "gorm:db_resolver:using"
