// Package install knows what was set on a database when the plugin was installed: defaults, the observer, the names of keys, and what the plugin
// remembers about the database's pools and models.
package install

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/literal"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/lookalike"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// Settings are the settings of one plugin, which may be installed on several databases. Nil means that no plugin is installed.
type Settings struct {
	DefaultTimeout    time.Duration
	PlainTransactions bool
	WithoutVersions   bool
	Servers           []string  // look-alikes of PostgreSQL on which locks are taken
	KeyNames          *KeyNames // nil: not kept
	Observer          observe.Observer

	// Refused tells the observer for which rows a write was refused. The root package sets it, because it has the error types.
	Refused func(ctx context.Context, s *Settings, err error)

	Pools sync.Map // *sql.DB → the pool that stands in for it

	SameTables sync.Map // two *sql.DB and a table that is the same on both: see journal.RefuseElsewhere

	Models sync.Map // *schema.Schema → what its tags say
	Jobs   sync.Map // *schema.Schema → the table of package work
	Roots  Names    // of tables: rows of other tables are parts of their rows

	Constants literal.Conditions // of queries that skip locked rows

	Unlinked Unlinked // what Association(…).Delete has removed from structs

	Learned Learned // what servers have said about tables: see journal.Known
}

// RefuseJob says why a write of a model with renewed columns must not happen. Package work sets it, because its models have such columns. Nil: the
// program does not use package work.
var RefuseJob func(stmt *gorm.Statement) error

// JobOf says which columns a statement must leave to the worker of a job, or nil if it is not about a job. Package work sets it.
var JobOf func(stmt *gorm.Statement) *Job

// Job describes the columns that must not change in a row while a worker has it.
type Job struct {
	State, Claim *schema.Field // they say that a worker has the row, and which one
	Running      string        // the State of such a row
	Refusal      func(row string, runs bool) error
}

// Bound limits the wait for every lock without a limit of its own.
func (s *Settings) Bound(d time.Duration) error {
	if _, err := lockrequest.New([]lockkey.Key{lockkey.Int64(0)}, advisory.Timeout(d)); err != nil {
		return fmt.Errorf("%w: given to DefaultTimeout", err)
	}
	s.DefaultTimeout = d
	return nil
}

// Allow allows locks on a look-alike of PostgreSQL.
func (s *Settings) Allow(name string) error {
	if err := lookalike.Check(name); err != nil {
		return fmt.Errorf("%w: AllowServer: %w", fault.ErrOption, err)
	}
	s.Servers = append(s.Servers, name)
	return nil
}

// entry is the name among db.Plugins under which Settings are found: the plugin's own type is in the root package.
const entry = "gormlock settings"

// Of returns the settings of db, or nil if the plugin is not installed.
func Of(db *gorm.DB) *Settings {
	s, _ := db.Plugins[entry].(*Settings)
	return s
}

// On makes Of find the settings on db.
func (s *Settings) On(db *gorm.DB) { db.Plugins[entry] = s }

// Name lets Settings be one of the plugins of a database.
func (*Settings) Name() string { return entry }

// Initialize implements [gorm.Plugin]. There is nothing to initialize.
func (*Settings) Initialize(*gorm.DB) error { return nil }

// Usable returns an error that says why db can run nothing, or nil.
func Usable(db *gorm.DB) error {
	if db == nil || db.Config == nil || db.Statement == nil {
		return fmt.Errorf("gormlock: %w: a nil *gorm.DB", gorm.ErrInvalidDB)
	}
	if db.Error != nil {
		return db.Error
	}
	if Of(db) == nil {
		return fault.ErrNotInstalled
	}
	return nil
}
