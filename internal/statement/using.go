package statement

// Using is the name of the clause with which Use of GORM's dbresolver names a database. It does not change the text of a statement.
const Using = "gorm:db_resolver:using"
