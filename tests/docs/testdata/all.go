// Package all is what the Go in the documents uses without declaring it.
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
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/observe/otelobserve"
	"github.com/gormlock/gormlock/sessionlock"
)

// T is any model.
type T struct{ ID int64 }

var (
	ctx       context.Context
	db, tx    *gorm.DB
	sqlDB     *sql.DB
	pool      *sql.DB
	sqlTx     *sql.Tx
	dsn, text string
	token     fence.Token
	err       error
	key, a, b lockkey.Key
	locks     *sessionlock.Manager
	leases    *lease.Manager
)
