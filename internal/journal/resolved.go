package journal

import (
	"database/sql"
	"sync"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

// resolver is the callback by which GORM's dbresolver picks the database of a statement. It comes before all others.
const resolver = "gorm:db_resolver"

// bare has GORM's callback processors without a callback in them: one runs scopes and parses the model, and nothing else.
var bare = sync.OnceValue(func() *gorm.DB {
	db, _ := gorm.Open(nil, &gorm.Config{DisableAutomaticPing: true}) // no dialect that could fail
	return db
})

// ForWrite is db on the database where an update of the row would run: a transaction is begun by no statement, from whose model and
// clauses dbresolver could tell. Without dbresolver it is db itself.
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

// OnSource is db for questions about a table whose answers on a replica would be late. It has nothing of what db was given, but the database
// that Use names. Without dbresolver it is on db itself.
func OnSource(db *gorm.DB, table string) *gorm.DB {
	source := db.Session(&gorm.Session{NewDB: true}).Set(resolver+":write", struct{}{}) // as its clause Write does
	source.Statement.Table = statement.NameInStatement(table)                           // by which dbresolver knows it
	if use, named := db.Statement.Clauses[statement.Using]; named {
		source.Statement.Clauses[statement.Using] = use
	}
	return source.Session(&gorm.Session{})
}

// OnNamed is db on the source of the database that Use names, to begin a transaction: Use has picked a replica where there is one. Without Use
// it is db itself.
func OnNamed(db *gorm.DB) *gorm.DB {
	if _, named := db.Statement.Clauses[statement.Using]; !named {
		return db
	}
	return ForWrite(db, nil)
}

// sourceOf is what to begin on where dbresolver has picked this pool. It knows the pools as they were when it was installed, and
// nothing of a single connection.
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
