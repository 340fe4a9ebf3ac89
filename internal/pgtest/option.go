package pgtest

import (
	"strings"
	"testing"

	"gorm.io/gorm"
)

// Option changes how Open, SQLDB and Conn connect. The set is closed.
type Option interface {
	apply(*options)
}

type options struct {
	gormOnly []string // names of the given options that only Open knows
	poolOnly []string
	configs  []func(*gorm.Config)
	plugins  []gorm.Plugin
	dsn      string
	params   [][2]string
	schema   bool
	simple   bool
	wrapped  bool
	maxConns int
}

type option func(*options)

func (o option) apply(to *options) { o(to) }

// Plugin installs a plugin, after GORM is open. Open only.
func Plugin(p gorm.Plugin) Option {
	return option(func(o *options) {
		o.gormOnly = append(o.gormOnly, "Plugin")
		o.plugins = append(o.plugins, p)
	})
}

// Config changes GORM's configuration before Open uses it. Open only. Default: a silent logger, and otherwise GORM's own settings.
func Config(change func(*gorm.Config)) Option {
	return configOption("Config", change)
}

// PrepareStmt turns on GORM's cache of prepared statements. Open only.
func PrepareStmt() Option {
	return configOption("PrepareStmt", func(c *gorm.Config) { c.PrepareStmt = true })
}

// SkipDefaultTransaction makes GORM write without its own transaction. Open only.
func SkipDefaultTransaction() Option {
	return configOption("SkipDefaultTransaction", func(c *gorm.Config) { c.SkipDefaultTransaction = true })
}

func configOption(name string, change func(*gorm.Config)) Option {
	return option(func(o *options) {
		o.gormOnly = append(o.gormOnly, name)
		o.configs = append(o.configs, change)
	})
}

// SimpleProtocol sends every statement as text in one message.
// Default: pgx prepares each statement once per connection and caches it.
func SimpleProtocol() Option {
	return option(func(o *options) { o.simple = true })
}

// Wrapped hides pgx under a wrapper of the driver, as programs write them to trace statements. Open and SQLDB only.
// Default: the connections of the pool are those of pgx.
func Wrapped() Option {
	return option(func(o *options) {
		o.poolOnly = append(o.poolOnly, "Wrapped")
		o.wrapped = true
	})
}

// Through connects with another connection string, such as that of a proxy.
// Default: DSN.
func Through(dsn string) Option {
	return option(func(o *options) { o.dsn = dsn })
}

// Param sets a parameter of the connection, such as a setting of the session.
func Param(name, value string) Option {
	return option(func(o *options) { o.params = append(o.params, [2]string{name, value}) })
}

// Schema connects to the test's own schema, which is empty at first. Everything that the same testing.TB opens with it shares the schema. It is
// dropped at the end. Default: the schema public, which the tests of the package share.
func Schema() Option {
	return option(func(o *options) { o.schema = true })
}

// MaxConns limits the pool, and keeps as many connections open. Open and SQLDB only.
// Default: no limit.
func MaxConns(n int) Option {
	return option(func(o *options) {
		o.poolOnly = append(o.poolOnly, "MaxConns")
		o.maxConns = n
	})
}

func newOptions(t testing.TB, opts []Option) *options {
	t.Helper()
	o := &options{}
	for _, opt := range opts {
		opt.apply(o)
	}
	if o.dsn == "" {
		o.dsn = DSN(t)
	}
	if o.schema {
		o.params = append(o.params, [2]string{"search_path", schemaOf(t, o.dsn)})
	}
	for _, param := range o.params {
		dsn, err := withParam(o.dsn, param[0], param[1])
		if err != nil {
			t.Fatal(err)
		}
		o.dsn = dsn
	}
	return o
}

// refuse ends the test if an option was given that would have no effect.
func refuse(t testing.TB, by string, names []string) {
	t.Helper()
	if len(names) > 0 {
		t.Fatalf("pgtest: %s means nothing to %s", strings.Join(names, ", "), by)
	}
}
