package gormlock

import (
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/hooks"
	"github.com/gormlock/gormlock/internal/aggregate"
	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/belongs"
	"github.com/gormlock/gormlock/internal/claim"
	"github.com/gormlock/gormlock/internal/concern"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/reading"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
	"github.com/gormlock/gormlock/internal/xact"
)

func init() {
	fault.Types.Stale, fault.Types.Fenced, fault.Types.Conflict = newStaleError, newFencedError, newConflictError
	mark.Register(xact.Mark, rowlock.Mark, asked.Mark)
}

// Plugin is what db.Use installs. One value can be installed on any number of databases.
type Plugin struct {
	settings *install.Settings
	err      error // what was wrong with the options
}

// Option configures a [Plugin].
type Option interface{ apply(*Plugin) }

type pluginOption func(*Plugin)

func (o pluginOption) apply(p *Plugin) { o(p) }

// DefaultTimeout limits the wait for every lock without a [Timeout] or a [Try]. It does not
// limit an INSERT, UPDATE or DELETE that waits for a row: lock_timeout and the deadline of the context do. In a foreign table only the
// deadline does. Default: the session's lock_timeout, which by default waits for ever.
func DefaultTimeout(d time.Duration) Option {
	return pluginOption(func(p *Plugin) { p.err = errors.Join(p.err, p.settings.Bound(d)) })
}

// PlainTransactions leaves GORM's connection pool as it is. This has three effects. A lock on a statement's own transaction costs a round
// trip. A struct that is written in a transaction of db.Transaction or db.Begin counts as not read from then on, even in that transaction;
// in a [Transaction] it does not. A [Locking] at REPEATABLE READ and above is [ErrSnapshotTaken], unless [AllowSnapshot] is given. Default: transactions
// begin on a pool that sees their end, and tx.DB() inside of one is a pool that lends connections, not the application's *sql.DB.
func PlainTransactions() Option {
	return pluginOption(func(p *Plugin) { p.settings.PlainTransactions = true })
}

// WithoutVersions leaves version columns to the application, as Rails' lock_optimistically = false does: version tags are ignored and no
// version moves. A statement with a clause about versions is an error. Default: tagged models are checked.
func WithoutVersions() Option {
	return pluginOption(func(p *Plugin) { p.settings.WithoutVersions = true })
}

// AllowServer is [advisory.AllowServer] for all locks of the plugin. Default: [ErrServer].
func AllowServer(name string) Option {
	return pluginOption(func(p *Plugin) { p.err = errors.Join(p.err, p.settings.Allow(name)) })
}

// New returns a plugin to install with db.Use. Everything works without options. The doc of each option says what it changes.
func New(opts ...Option) *Plugin {
	p := &Plugin{settings: &install.Settings{Refused: tellRefused}}
	for _, o := range opts {
		if o == nil {
			p.err = fmt.Errorf("%w: New(nil), an option is nil", ErrOption)
			continue
		}
		o.apply(p)
	}
	return p
}

// Name is the name under which GORM knows the plugin.
func (p *Plugin) Name() string { return "gormlock" }

// Initialize attaches the plugin to db. GORM calls it, and calls it again for each database that its dbresolver opens.
func (p *Plugin) Initialize(db *gorm.DB) error {
	if p == nil || p.settings == nil {
		return fmt.Errorf("%w: a nil or zero Plugin, make it with New", ErrOption)
	}
	if p.err != nil {
		return p.err
	}
	if err := hooks.Install(db, handlers); err != nil {
		return err
	}
	guard.InstallBuilders(db)
	p.settings.KeyNames.LogTo(db.Logger)
	if !p.settings.PlainTransactions {
		journal.ReplacePool(p.settings, db)
	}
	p.settings.On(db)
	return nil
}

// Close ends the goroutines of the plugin. These are: the one of [WithKeyNames]; one for each database on which statements were prepared, by
// GORM's PrepareStmt or by Prepare on a transaction; and one for each transaction whose context has ended and that the program has not ended,
// which would last a minute. Call Close after the last statement, before a test looks for goroutines. A program that exits need not call it.
func (p *Plugin) Close() error {
	if p == nil || p.settings == nil {
		return nil
	}
	p.settings.KeyNames.Close()
	return journal.ClosePools(p.settings)
}

// handlers is everything that gormlock does in the life of a statement.
var handlers = hooks.Handlers{
	Create: hooks.Write{
		BeforeBegin: beforeCreate, InTransaction: inTransaction, BeforeAssociations: belongs.BeforeAssociations(aggregate.BeforeAssociations),
		BeforeWrite: beforeWrite(guard.BeforeCreate, aggregate.BeforeCreate), AfterWrite: afterWrite(guard.AfterCreate), AfterHooks: belongs.AfterAssociations(mark.RefuseAfterHooks), End: guard.End, AfterEnd: afterEnd,
	},
	Update: hooks.Write{
		BeforeBegin: beforeUpdate, InTransaction: inTransaction, BeforeAssociations: belongs.BeforeAssociations(aggregate.BeforeAssociations),
		BeforeWrite: beforeWrite(guard.BeforeUpdate, aggregate.BeforeUpdate), AfterWrite: afterWrite(guard.AfterUpdate), AfterHooks: belongs.AfterAssociations(mark.RefuseAfterHooks), End: guard.End, AfterEnd: afterEnd,
	},
	Delete: hooks.Write{
		BeforeBegin: beforeDelete, InTransaction: inTransaction,
		BeforeWrite: beforeWrite(guard.BeforeDelete, aggregate.BeforeDelete), AfterWrite: afterWrite(guard.AfterDelete), AfterHooks: mark.RefuseAfterHooks, End: guard.End, AfterEnd: afterEnd,
	},
	Query: concern.Query(hooks.Read{BeforeRead: beforeQuery, AfterRead: afterQuery, AfterHooks: afterQueryHooks}),
	Row:   concern.Row(hooks.Read{BeforeRead: beforeRow, AfterRead: rowlock.EndRow(afterRow)}),
	Raw:   hooks.Read{BeforeRead: beforeRaw, AfterRead: afterRaw}, Displaced: refuseDisplaced,
}

func refuseDisplaced(db *gorm.DB, callback string) (refused bool) {
	if refused = concern.RefuseDisplaced(db, callback); refused {
		xact.RefuseRow(db)
	}
	return refused
}

func beforeCreate(db *gorm.DB) {
	mark.HeedWrite(db)
	if guard.SaveByKey(db) {
		return
	}
	xact.Recall(db)
	rowlock.RefuseInCreate(db)
	guard.RememberCreate(db)
	beforeBegin(db)
}

func beforeUpdate(db *gorm.DB) {
	whereabouts.NoticeCopies(db)
	statement.NameModel(db)
	mark.HeedWrite(db)
	rowlock.Refuse(db)
	guard.RememberUpdate(db)
	beforeBegin(db)
}

func beforeDelete(db *gorm.DB) {
	mark.HeedWrite(db)
	rowlock.Refuse(db)
	guard.RememberDelete(db)
	beforeBegin(db)
}

func beforeWrite(check, moveRoots func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		heedLateMarks(db)
		belongs.BeforeWrite(db)
		check(db)
		moveRoots(db)
	}
}

// heedLateMarks runs right before a write, after its hooks and the callbacks of other plugins. If one of them has asked for a lock, it is
// taken now. Clauses about versions and fences come too late, and are refused.
func heedLateMarks(db *gorm.DB) {
	if mark.IsOn(db.Statement) {
		xact.Take(db)
		rowlock.Refuse(db)
		mark.RefuseLate(db)
	}
}

func afterWrite(settle func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		journal.Hear(db)
		settle(db)
		belongs.AfterWrite(db)
		aggregate.After(db)
	}
}

func afterRow(db *gorm.DB) {
	journal.HearRead(db)
	if !claim.Is(db.Statement) {
		guard.EndRead(db)
		reading.KeepScan(db)
	}
	mark.Forget(db)
	xact.AfterRow(db)
	fault.AddCause(db)
}

func afterRaw(db *gorm.DB) {
	xact.HearRaw(db)
	mark.Forget(db)
	fault.AddCause(db)
}

func afterEnd(db *gorm.DB) {
	guard.Close(db)
	whereabouts.AfterEnd(db)
	belongs.AfterEnd(db)
	journal.Leave(db)
	mark.Forget(db)
	fault.Mend(db)
	fault.AddCause(db)
}

func beforeBegin(db *gorm.DB) {
	journal.ChoosePool(db, xact.AtBegin(db) || model.NeedsJournal(db, db.Statement.Schema))
}

func inTransaction(db *gorm.DB) {
	journal.ResumePool(db)
	if !db.SkipDefaultTransaction && model.NeedsJournal(db, db.Statement.Schema) && journal.Of(db.Statement) == nil && statement.Transaction(db.Statement) != nil {
		if _, own := db.InstanceGet("gorm:started_transaction"); own {
			journal.Adopt(db)
		}
	}
	guard.Open(db)
	xact.Take(db)
}

func beforeQuery(db *gorm.DB) {
	mark.HeedRead(db)
	journal.RefuseCommit(db)
	guard.RefuseRead(db)
	m := model.CheckTags(db)
	rowlock.Begin(db, xact.On(db.Statement) != nil, xact.Take)
	belongs.BeforeRead(db, m)
	guard.BeginRead(db)
	reading.Begin(db, m)
}

func beforeRaw(db *gorm.DB) {
	mark.HeedWrite(db)
	journal.RefuseCommit(db)
	guard.RefuseOnText(db)
	rowlock.Refuse(db)
	model.CheckTags(db)
	xact.TakeRaw(db)
}

func afterQuery(db *gorm.DB) {
	columns := statement.ColumnsNoted(db.Statement)
	rowlock.End(db)
	journal.HearRead(db)
	belongs.AfterRead(db)
	guard.EndQuery(db)
	reading.Keep(db, columns)
}

func afterQueryHooks(db *gorm.DB) {
	rowlock.ShowJoins(db)
	reading.End(db)
	guard.EndHooks(db)
	mark.Forget(db)
	fault.AddCause(db)
}

func beforeRow(db *gorm.DB) {
	mark.HeedRead(db)
	journal.RefuseCommit(db)
	claim.PrepareClaim(db)
	guard.RefuseRead(db)
	xact.Take(db)
	rowlock.BeginRow(db)
	xact.RefuseRow(db)
	if !claim.Is(db.Statement) {
		guard.BeginRead(db)
		reading.AskForScan(db)
	}
}
