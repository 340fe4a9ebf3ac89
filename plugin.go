package gormlock

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/hooks"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// Plugin is what db.Use installs. One value can be installed on any number of databases.
type Plugin struct {
	defaultTimeout    time.Duration
	plainTransactions bool
	withoutVersions   bool
	keyNames          *keyNames // nil: not kept
	versions          versionCache
	observer          observe.Observer
	err               error

	pools sync.Map // *sql.DB → *connPool
}

// Option configures a [Plugin].
type Option interface{ apply(*Plugin) }

type pluginOption func(*Plugin)

func (o pluginOption) apply(p *Plugin) { o(p) }

// DefaultTimeout bounds the wait for every lock that names no [Timeout] of its own and is no [Try]. Default: the
// session's lock_timeout, which by default waits for ever.
func DefaultTimeout(d time.Duration) Option {
	return pluginOption(func(p *Plugin) {
		if _, err := advisory.NewRequest([]lockkey.Key{lockkey.Int64(0)}, advisory.Timeout(d)); err != nil {
			p.err = fmt.Errorf("DefaultTimeout: %w", err)
		}
		p.defaultTimeout = d
	})
}

// PlainTransactions leaves GORM's connection pool as it is. A lock on a statement's own transaction then costs a round
// trip, and what a rollback of db.Transaction or db.Begin should put right in memory is put right only by [Transaction];
// a [Locking] at REPEATABLE READ and above is [ErrSnapshotTaken] unless [AllowSnapshot]. Default: transactions are begun
// on a pool that sees their end, and tx.DB() inside one is a pool of that transaction's connection source, not the *sql.DB
// the application opened.
func PlainTransactions() Option {
	return pluginOption(func(p *Plugin) { p.plainTransactions = true })
}

// WithoutVersions leaves version columns to the application: tags are not read, nothing is checked and nothing moves, as
// with Rails' lock_optimistically = false. A statement that asks about a version is an error. Default: tagged models are
// checked.
func WithoutVersions() Option {
	return pluginOption(func(p *Plugin) { p.withoutVersions = true })
}

// New is a plugin to install with db.Use. Without options everything works; what an option changes stands in its doc.
func New(opts ...Option) *Plugin {
	p := &Plugin{}
	for _, o := range opts {
		o.apply(p)
	}
	return p
}

// Name is the name under which GORM knows the plugin.
func (p *Plugin) Name() string { return "gormlock" }

// Initialize attaches the plugin to db. GORM calls it, also again for databases that its dbresolver opens.
func (p *Plugin) Initialize(db *gorm.DB) error {
	if p.err != nil {
		return p.err
	}
	if err := hooks.Install(db, handlers); err != nil {
		return err
	}
	buildVersions(db)
	p.keyNames.logTo(db.Logger)
	if !p.plainTransactions {
		p.replacePool(db)
	}
	return nil
}

// Close ends the goroutines that the plugin keeps: that of [WithKeyNames], and one for each database on which statements
// were prepared, by GORM's PrepareStmt or Prepare on a transaction. Call it after the last statement, before a test looks
// for goroutines; a program that ends need not.
func (p *Plugin) Close() error {
	p.keyNames.close()
	var err error
	p.pools.Range(func(_, pool any) bool {
		err = errors.Join(err, pool.(*connPool).transactions.Close())
		return true
	})
	return err
}

// pluginOf is the plugin installed on db, nil when there is none.
func pluginOf(db *gorm.DB) *Plugin {
	p, _ := db.Plugins["gormlock"].(*Plugin)
	return p
}

// isPostgres reports whether db speaks to PostgreSQL, or to a server that speaks like it.
func isPostgres(db *gorm.DB) bool { return db.Name() == "postgres" }

// handlers is all that gormlock does in the life of a statement.
var handlers = hooks.Handlers{
	Create: hooks.Write{
		BeforeBegin: beforeCreate, InTransaction: inTransaction,
		BeforeWrite: beforeWrite(checkVersionsBeforeCreate), AfterWrite: afterCreate, AfterHooks: refuseMarksOfAfterHooks, AfterEnd: afterEnd,
	},
	Update: hooks.Write{
		BeforeBegin: beforeUpdate, InTransaction: inTransaction,
		BeforeWrite: beforeWrite(checkVersionsBeforeUpdate), AfterWrite: afterUpdate, AfterHooks: refuseMarksOfAfterHooks, AfterEnd: afterEnd,
	},
	Delete: hooks.Write{
		BeforeBegin: beforeDelete, InTransaction: inTransaction,
		BeforeWrite: beforeWrite(checkVersionsBeforeDelete), AfterWrite: checkVersionsAfterDelete, AfterHooks: refuseMarksOfAfterHooks, AfterEnd: afterEnd,
	},
	Query: hooks.Read{BeforeRead: beforeQuery, AfterRead: afterQuery, AfterHooks: func(db *gorm.DB) { refuseMarksOfAfterHooks(db); settled(db) }},
	Row:   hooks.Read{BeforeRead: beforeRow, AfterRead: settled},
	Raw:   hooks.Read{BeforeRead: beforeRaw, AfterRead: settled},
}

func beforeCreate(db *gorm.DB) {
	settleMarks(db.Statement)
	refuseLeftOut(db)
	refuseRowLockInCreate(db)
	rememberBeforeCreate(db)
	beforeBegin(db)
}

func beforeUpdate(db *gorm.DB) {
	settleMarks(db.Statement)
	refuseLeftOut(db)
	refuseRowLock(db)
	rememberBeforeUpdate(db)
	beforeBegin(db)
}

func beforeDelete(db *gorm.DB) {
	settleMarks(db.Statement)
	refuseLeftOut(db)
	refuseRowLock(db)
	rememberBeforeDelete(db)
	beforeBegin(db)
}

func beforeWrite(check func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		heedLateMarks(db)
		check(db)
	}
}

func afterCreate(db *gorm.DB) {
	checkVersionsAfterCreate(db)
	noticeMoved(db)
}

func afterUpdate(db *gorm.DB) {
	checkVersionsAfterUpdate(db)
	noticeMoved(db)
}

func afterEnd(db *gorm.DB) {
	closeVersions(db)
	settled(db)
	mendError(db)
}

func beforeBegin(db *gorm.DB) {
	choosePool(db, lockAtBegin(db))
}

func inTransaction(db *gorm.DB) {
	resumePool(db)
	openForVersions(db)
	takeXactLocks(db)
}

func beforeQuery(db *gorm.DB) {
	settleMarksOfRead(db.Statement)
	refuseLeftOutOfRead(db)
	refuseIntentOnText(db)
	refuseExpectations(db)
	readVersionTags(db)
	takeXactLocks(db)
	beginRowLock(db)
}

func beforeRaw(db *gorm.DB) {
	settleMarks(db.Statement)
	refuseLeftOut(db)
	refuseIntentOnText(db)
	refuseRowLock(db)
	readVersionTags(db)
	takeXactLocks(db)
}

func afterQuery(db *gorm.DB) {
	endRowLock(db)
	keepRead(db)
}

func beforeRow(db *gorm.DB) {
	settleMarksOfRead(db.Statement)
	refuseLeftOutOfRead(db)
	refuseIntentOnText(db)
	prepareClaim(db)
	refuseExpectations(db)
	takeXactLocks(db)
	beginRowLockInRow(db)
	refuseRow(db)
}
