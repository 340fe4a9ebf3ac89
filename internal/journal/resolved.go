package journal

import (
	"database/sql"
	"sync"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

// resolver is the callback with which GORM's dbresolver picks the database of a statement. It runs before all others.
const resolver = "gorm:db_resolver"

// bare has GORM's callback processors without callbacks: they run scopes and parse the model, and do nothing else.
var bare = sync.OnceValue(func() *gorm.DB {
	db, _ := gorm.Open(nil, &gorm.Config{DisableAutomaticPing: true}) // no dialect that could fail
	return db
})

// ForWrite is db on the database where an update of the row would run. dbresolver finds that out from a statement, and a BEGIN has none.
// Without dbresolver it is db itself.
func ForWrite(db *gorm.DB, row any) *gorm.DB {
	resolve := db.Callback().Update().Get(resolver)
	if resolve == nil {
		return db
	}
	write := bare().Callback().Update().Execute(statement.Beside(db).Model(row))
	write.Statement.Context = db.Statement.Context // GORM may have bounded it for this one statement
	resolve(write)
	pool := sourceOf(db, write.Statement.ConnPool)
	on := statement.Session(db, gorm.Session{Context: write.Statement.Context}) // with a statement of its own
	on.Statement.ConnPool = pool
	return on
}

// OnSource is a db for questions about a table that a replica would answer with old data. Of everything that db was given it keeps only the
// database that Use names. Without dbresolver it is on the database of db.
func OnSource(db *gorm.DB, table string) *gorm.DB {
	source := db.Session(&gorm.Session{NewDB: true}).Set(resolver+":write", struct{}{}) // as its clause Write does
	source.Statement.Table = statement.NameInStatement(table)                           // dbresolver looks at it
	if use, named := db.Statement.Clauses[statement.Using]; named {
		source.Statement.Clauses[statement.Using] = use
	}
	return source.Session(&gorm.Session{})
}

// OnNamed is db on the source of the database that Use names, to begin a transaction there. Use itself picks a replica if there is one. Without
// Use it is db itself.
func OnNamed(db *gorm.DB) *gorm.DB {
	if _, named := db.Statement.Clauses[statement.Using]; !named {
		return db
	}
	return ForWrite(db, nil)
}

// sourceOf is the pool on which to begin if dbresolver has picked this one. dbresolver knows the pools from before gormlock replaced them, and
// does not know single connections.
func sourceOf(db *gorm.DB, picked gorm.ConnPool) gorm.ConnPool {
	database := DatabaseUnder(picked)
	if conn, one := db.Statement.ConnPool.(*sql.Conn); one && database != nil && behind(conn) == database {
		return conn
	}
	if database != nil && database == DatabaseUnder(db.ConnPool) {
		picked = db.ConnPool
	}
	if plain, ok := picked.(*sql.DB); ok && plain != nil {
		if s := install.Of(db); s != nil && !s.PlainTransactions {
			return poolOver(s, plain, db)
		}
	}
	return picked
}
