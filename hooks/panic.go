package hooks

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// own are GORM's callbacks between the begin and the end of a statement. They run hooks, and code of fields and drivers.
var own = []string{
	"gorm:before_create", "gorm:create", "gorm:after_create",
	"gorm:setup_reflect_value", "gorm:before_update", "gorm:update", "gorm:after_update",
	"gorm:before_delete", "gorm:delete_before_associations", "gorm:delete", "gorm:after_delete",
	"gorm:save_before_associations", "gorm:save_after_associations",
}

// errStopped is the error of a statement that has panicked or ended its goroutine.
var errStopped = errors.New("gormlock: a hook or a callback of this statement has panicked, or has ended its goroutine")

// ending wraps a callback, so that the statement ends if the callback panics or ends its goroutine. GORM would leave the transaction of the
// statement open, and nobody could end it.
func ending(callback, afterEnd func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		returned := false
		defer func() {
			if !returned {
				stop(db, afterEnd)
			}
		}()
		callback(db)
		returned = true
	}
}

// stop ends a statement as GORM ends one that has failed.
func stop(db *gorm.DB, afterEnd func(*gorm.DB)) {
	defer afterEnd(db)
	if db.Error == nil {
		db.Error = errStopped
	}
	if _, began := db.InstanceGet("gorm:started_transaction"); began {
		db.Rollback()
		db.Statement.ConnPool = db.ConnPool
	}
}

// replaceable is the interface of GORM's callback processors.
type replaceable interface {
	Get(string) func(*gorm.DB)
	Replace(string, func(*gorm.DB)) error
}

// endEach wraps GORM's own callbacks of one kind of statement, and the one that ends its transaction. GORM logs each, as if a callback of the
// application were replaced.
func endEach(db *gorm.DB, processor replaceable, w Write) error {
	tell := db.Logger
	db.Logger = logger.Discard
	defer func() { db.Logger = tell }()
	for _, name := range own {
		if callback := processor.Get(name); callback != nil {
			if err := processor.Replace(name, ending(callback, w.AfterEnd)); err != nil {
				return err
			}
		}
	}
	if callback := processor.Get(end); callback != nil && w.End != nil {
		return processor.Replace(end, func(db *gorm.DB) { w.End(db, callback) })
	}
	return nil
}
