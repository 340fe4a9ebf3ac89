// Package all is what the Go in the documents uses without declaring it. The packages it imports are those of every snippet.
package all

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/glebarez/sqlite"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/observe/otelobserve"
	"github.com/gormlock/gormlock/pgxlock"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/gormlock/gormlock/tests/docs/runner"
	"github.com/gormlock/gormlock/work"
)

// T is any model.
type T struct{ ID int64 }

var (
	ctx       context.Context
	db, tx    *gorm.DB
	sqlDB     *sql.DB
	pool      *sql.DB
	sqlTx     *sql.Tx // of tx
	dsn, text string
	token     fence.Token
	err       error
	key, a, b lockkey.Key
	locks     *sessionlock.Manager // where a snippet uses them
	leases    *lease.Manager
)

// begin comes before each snippet. Its schema has no tables but gormlock's own.
func begin() {
	world := runner.Here()
	ctx, dsn, db, sqlDB, pool = context.Background(), world.DSN, world.DB, world.SQL, world.SQL
	key, a, b, text, err = gormlock.Key("docs", 1), gormlock.Key("docs", 2), gormlock.Key("docs", 3), "new", nil
	token, err = fence.Issue(ctx, pool, key)
	runner.Check(err)
	setup(world)
	tx = db.Begin()
	world.Defer(func() error { tx.Rollback(); return nil }) // where the snippet did not come to its end
	sqlTx = tx.Statement.ConnPool.(*sql.Tx)
}

// setup makes the tables and rows of a document whose prelude has none of its own.
func setup(*runner.World) {}

// end comes after each snippet.
func end() { runner.Check(tx.Commit()) }
