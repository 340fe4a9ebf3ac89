package fault

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
)

// AddGiven adds the error of a clause to the db that it is given to. GORM would begin a transaction there all the same, and never end it.
func AddGiven(stmt *gorm.Statement, err error) {
	Add(stmt.DB, err)
	if _, open := stmt.ConnPool.(gorm.TxCommitter); !open && stmt.ConnPool != nil {
		stmt.ConnPool = refusing{stmt.ConnPool, err}
	}
}

// refusing is a pool on which nothing begins.
type refusing struct {
	gorm.ConnPool
	err error
}

// BeginTx returns the error that the db has already.
func (r refusing) BeginTx(context.Context, *sql.TxOptions) (gorm.ConnPool, error) {
	return r.ConnPool, r.err
}

// GetDBConn is that of the pool.
func (r refusing) GetDBConn() (*sql.DB, error) {
	switch pool := r.ConnPool.(type) {
	case *sql.DB:
		return pool, nil
	case gorm.GetDBConnector:
		return pool.GetDBConn()
	}
	return nil, gorm.ErrInvalidDB
}
