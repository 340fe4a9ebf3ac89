// Package lookalikes has the tests of servers that talk like PostgreSQL and are none.
package lookalikes_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/pgxlock"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// place is a server by the ways to talk to it.
type place struct {
	db   *gorm.DB
	sql  *sql.DB
	pgx  *pgxpool.Pool
	key  lockkey.Key
	opts []advisory.Option
}

// at connects to the server of dsn, with the simple protocol. Servers that are allowed are so on all doors.
func at(t *testing.T, dsn string, allowed ...string) *place {
	t.Helper()
	p := &place{key: lockkey.Of("lookalikes", t.Name())}
	var plugin []gormlock.Option
	for _, name := range allowed {
		plugin = append(plugin, gormlock.AllowServer(name))
		p.opts = append(p.opts, advisory.AllowServer(name))
	}
	p.db = pgtest.Open(t, pgtest.Through(dsn), pgtest.SimpleProtocol(), pgtest.MaxConns(2), pgtest.Plugin(gormlock.New(plugin...)))
	p.sql = pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.SimpleProtocol(), pgtest.MaxConns(2))
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DefaultQueryExecMode, config.MaxConns = pgx.QueryExecModeSimpleProtocol, 2
	if p.pgx, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.pgx.Close)
	return p
}

// door is a way to take a lock.
type door struct {
	name string
	// open asks in a transaction that is open already: where the server then has no savepoints, nobody is left to ask for
	// its name.
	open bool
	take func(ctx context.Context, p *place, opts ...advisory.Option) error
}

var doors = []door{
	{"scope", false, func(ctx context.Context, p *place, opts ...advisory.Option) error {
		return p.db.WithContext(ctx).Scopes(gormlock.WithXactLock(p.key, opts...)).Model(&struct{ ID int }{}).Table("things").Where("id = 1").Update("id", 1).Error
	}},
	{"Transaction", false, func(ctx context.Context, p *place, opts ...advisory.Option) error {
		return gormlock.Transaction(p.db.WithContext(ctx), func(*gorm.DB) error { return nil }, gormlock.Locking(p.key, opts...))
	}},
	{"Transaction at SERIALIZABLE", false, func(ctx context.Context, p *place, opts ...advisory.Option) error {
		return gormlock.Transaction(p.db.WithContext(ctx), func(*gorm.DB) error { return nil }, gormlock.Locking(p.key, opts...), gormlock.Isolation(sql.LevelSerializable))
	}},
	{"AcquireXactLock", true, func(ctx context.Context, p *place, opts ...advisory.Option) error {
		return p.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{p.key}, opts...) })
	}},
	{"advisory.Acquire", true, func(ctx context.Context, p *place, opts ...advisory.Option) error {
		tx, err := p.sql.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		err = advisory.Acquire(ctx, tx, []lockkey.Key{p.key}, slices.Concat(p.opts, opts)...)
		if err != nil {
			_ = tx.Rollback()
			return err
		}
		return tx.Commit()
	}},
	{"pgxlock.Acquire", true, func(ctx context.Context, p *place, opts ...advisory.Option) error {
		return pgx.BeginFunc(ctx, p.pgx, func(tx pgx.Tx) error {
			return pgxlock.Acquire(ctx, tx, []lockkey.Key{p.key}, slices.Concat(p.opts, opts)...)
		})
	}},
	{"pgxlock.Transaction", false, func(ctx context.Context, p *place, opts ...advisory.Option) error {
		return pgxlock.Transaction(ctx, p.pgx, func(pgx.Tx) error { return nil }, pgxlock.Locking(p.key, slices.Concat(p.opts, opts)...))
	}},
	{"pgxlock.Transaction at SERIALIZABLE", false, func(ctx context.Context, p *place, opts ...advisory.Option) error {
		return pgxlock.Transaction(ctx, p.pgx, func(pgx.Tx) error { return nil }, pgxlock.Locking(p.key, slices.Concat(p.opts, opts)...), pgxlock.Isolation(pgx.Serializable))
	}},
	{"advisory.SessionLocker", false, func(ctx context.Context, p *place, _ ...advisory.Option) error {
		conn, err := p.sql.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		return advisory.SessionLocker(p.key).SessionLock(ctx, conn)
	}},
}

// options are those that change the statement which takes the lock.
var options = map[string][]advisory.Option{
	"": nil, "Try": {advisory.Try()}, "Shared": {advisory.Shared()}, "AllowSnapshot": {advisory.AllowSnapshot()},
}

// refused asserts that every door refuses the server, by its name.
func refused(t *testing.T, dsn, name string, savepoints bool) {
	t.Helper()
	p := at(t, dsn)
	for _, d := range doors {
		for with, opts := range options {
			err := d.take(t.Context(), p, opts...)
			if !errors.Is(err, gormlock.ErrServer) || !errors.Is(err, advisory.ErrServer) || gormlock.IsRetryable(err) {
				t.Errorf("%s, %s: %v", d.name, with, err)
				continue
			}
			if named := strings.Contains(err.Error(), "it is "+name); !named && (savepoints || !d.open) {
				t.Errorf("%s, %s: does not name %s: %v", d.name, with, name, err)
			}
		}
	}
	_, err := sessionlock.Open(t.Context(), dsn)
	if !errors.Is(err, sessionlock.ErrServer) || !strings.Contains(fmt.Sprint(err), "it is "+name) {
		t.Errorf("sessionlock.Open: %v", err)
	}
}
