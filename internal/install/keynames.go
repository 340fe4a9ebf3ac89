package install

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"

	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock/internal/keynames"
	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/lockkey"
)

// KeyNames are the recorders of a plugin, one for each database.
type KeyNames struct {
	recorders sync.Map                         // *sql.DB → *keynames.Recorder
	logger    atomic.Pointer[logger.Interface] // of the last database that the plugin was installed on
}

// LogTo says where failures are reported. A nil KeyNames does nothing.
func (k *KeyNames) LogTo(log logger.Interface) {
	if k != nil {
		k.logger.Store(&log)
	}
}

// Note says that the program is about to ask for the keys of request. A nil KeyNames does nothing.
func (k *KeyNames) Note(db *sql.DB, request interface{ Keys() []lockkey.Key }) {
	if k == nil || db == nil {
		return
	}
	recorder, ok := k.recorders.Load(db)
	if !ok {
		recorder, _ = k.recorders.LoadOrStore(db, keynames.New(db, k.report))
	}
	for _, key := range request.Keys() {
		recorder.(*keynames.Recorder).Note(Number(key), keynames.Transaction, key)
	}
}

func (k *KeyNames) report(err error) {
	if log := k.logger.Load(); log != nil && *log != nil {
		(*log).Error(context.Background(), "%v", err)
	}
}

// Close ends the recorders. A nil KeyNames does nothing.
func (k *KeyNames) Close() {
	if k == nil {
		return
	}
	k.recorders.Range(func(_, recorder any) bool {
		recorder.(*keynames.Recorder).Close()
		return true
	})
}

// Number is a key as it is in the table of names.
func Number(key lockkey.Key) keynames.ID {
	id, _ := lockid.Of(key)
	return id
}
