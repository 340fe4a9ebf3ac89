package gormlock

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/keynames"
	"github.com/gormlock/gormlock/lockkey"
)

// WithKeyNames keeps the names of advisory locks in the table gormlock_key_name, which inspect.Migrate creates, so that
// package inspect can say which lock a number in pg_locks is. Only keys that are waited for or held for more than a
// second get a row, in batches, written in the background on a connection of the database's own pool; a row that nobody
// needed for a day is deleted. No statement waits for it or fails by it: what goes wrong is said once by GORM's logger,
// as an error, and tried again. While all connections of the pool wait for locks, names are not written. [Plugin.Close]
// ends it. Default: names stay in the program.
func WithKeyNames() Option {
	return pluginOption(func(p *Plugin) { p.keyNames = &keyNames{} })
}

// keyNames are the recorders of a plugin, one for each database.
type keyNames struct {
	recorders sync.Map                         // *sql.DB → *keynames.Recorder
	logger    atomic.Pointer[logger.Interface] // of the database that the plugin was installed on last
}

// logTo says where failures are reported. A nil keyNames does nothing.
func (k *keyNames) logTo(log logger.Interface) {
	if k != nil {
		k.logger.Store(&log)
	}
}

// note says that the keys of request are about to be asked for. A nil keyNames does nothing.
func (k *keyNames) note(db *sql.DB, request *advisory.Request) {
	if k == nil || db == nil || request == nil {
		return
	}
	recorder, ok := k.recorders.Load(db)
	if !ok {
		recorder, _ = k.recorders.LoadOrStore(db, keynames.New(db, k.report))
	}
	for _, key := range request.Keys() {
		recorder.(*keynames.Recorder).Note(numberOf(key), keynames.Transaction, key)
	}
}

func (k *keyNames) report(err error) {
	if log := k.logger.Load(); log != nil && *log != nil {
		(*log).Error(context.Background(), "%v", err)
	}
}

// close ends the recorders. A nil keyNames does nothing.
func (k *keyNames) close() {
	if k == nil {
		return
	}
	k.recorders.Range(func(_, recorder any) bool {
		recorder.(*keynames.Recorder).Close()
		return true
	})
}

// numberOf is a key as the table of names has it.
func numberOf(key lockkey.Key) keynames.ID {
	if hi, lo, ok := key.Pair(); ok {
		return keynames.ID{Space: 2, ID: int64(hi)<<32 | int64(uint32(lo))}
	}
	id, _ := key.Int64()
	return keynames.ID{Space: 1, ID: id}
}

// databaseUnder is the *sql.DB under a pool, nil when there is none.
func databaseUnder(pool gorm.ConnPool) *sql.DB {
	switch pool := pool.(type) {
	case *connPool:
		return pool.DB
	case *sql.DB:
		return pool
	case *gorm.PreparedStmtDB:
		return databaseUnder(pool.ConnPool)
	}
	return nil
}
