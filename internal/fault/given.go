package fault

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
)

// AddGiven adds the error of a clause to the db that it is given to. Otherwise GORM would still begin a transaction there, and never end it.
func AddGiven(stmt *gorm.Statement, err error) {
	Add(stmt.DB, err)
	if _, open := stmt.ConnPool.(gorm.TxCommitter); open || stmt.ConnPool == nil {
		return
	}
	stmt.ConnPool = &refusing{stmt.ConnPool, err}
	if config := *stmt.Config; config.DisableNestedTransaction { // otherwise GORM would run the function of a transaction as if it were nested
		config.DisableNestedTransaction = false
		stmt.Config = &config
	}
}

// refusing is a pool on which nothing begins. It looks like a transaction, which dbresolver does not replace. So GORM sets a savepoint, and that
// fails with the error that the db has already.
type refusing struct {
	gorm.ConnPool
	err error
}

// BeginTx returns the error.
func (r *refusing) BeginTx(context.Context, *sql.TxOptions) (gorm.ConnPool, error) {
	return r.ConnPool, r.err
}

// ExecContext returns the error too: there is no transaction to execute anything in.
func (r *refusing) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, r.err
}

// Commit has nothing to commit.
func (*refusing) Commit() error { return gorm.ErrInvalidTransaction }

// Rollback has nothing to roll back.
func (*refusing) Rollback() error { return gorm.ErrInvalidTransaction }

// StmtContext makes a session with PrepareStmt treat it as a transaction too.
func (*refusing) StmtContext(_ context.Context, stmt *sql.Stmt) *sql.Stmt { return stmt }

// GetDBConn returns the database of the pool.
func (r *refusing) GetDBConn() (*sql.DB, error) {
	switch pool := r.ConnPool.(type) {
	case *sql.DB:
		return pool, nil
	case gorm.GetDBConnector:
		return pool.GetDBConn()
	}
	return nil, gorm.ErrInvalidDB
}

var _ gorm.Tx = (*refusing)(nil)
