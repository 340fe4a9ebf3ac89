// Sqlcbeside has two halves that share a database: one writes with GORM, the other with pgx and queries as sqlc makes them.
// Both give numbers to invoices, without gaps: read the last one, add one, store. The lock of one key serializes them, in
// gormlock.Transaction here and in pgxlock.Transaction there. Without it numbers are given twice.
//
//	go -C examples run ./sqlcbeside
//
// It runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, in a schema of its own that it drops at the end, or, where
// neither is set, on a throw-away server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/examples/internal/place"
	"github.com/gormlock/gormlock/pgxlock"
)

// Invoice has a number that must be its own.
type Invoice struct {
	ID     int64
	Number int64 `gorm:"index"`
	Maker  string
}

const (
	clerks   = 3  // of each half
	invoices = 25 // of each clerk
)

// numbers is the key on which both halves agree.
var numbers = gormlock.Key("invoice numbers")

// withGORM adds an invoice in the half that uses GORM.
func withGORM(ctx context.Context, db *gorm.DB, opts ...gormlock.TxOption) error {
	return gormlock.Transaction(db.WithContext(ctx), func(tx *gorm.DB) error {
		var last int64
		if err := tx.Model(&Invoice{}).Select("coalesce(max(number), 0)").Scan(&last).Error; err != nil {
			return err
		}
		return tx.Create(&Invoice{Number: last + 1, Maker: "gorm"}).Error
	}, opts...)
}

// withSQLC adds an invoice in the half that uses sqlc.
func withSQLC(ctx context.Context, pool *pgxpool.Pool, opts ...pgxlock.TxOption) error {
	queries := NewQueries(pool)
	return pgxlock.Transaction(ctx, pool, func(tx pgx.Tx) error {
		queries := queries.WithTx(tx)
		last, err := queries.LastNumber(ctx)
		if err != nil {
			return err
		}
		return queries.AddInvoice(ctx, last+1, "sqlc")
	}, opts...)
}

func main() {
	place.Main("sqlcbeside", func(ctx context.Context) error {
		_, err := show(ctx, os.Stdout, place.Given())
		return err
	})
}

// show lets all clerks work, without the lock and with it. It returns how many numbers were given twice without, and
// fails if there was one with it.
func show(ctx context.Context, out io.Writer, dsn string) (twice int64, err error) {
	p, err := place.New(ctx, dsn, "sqlcbeside")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Leave()) }()
	if err := p.DB.AutoMigrate(&Invoice{}); err != nil {
		return 0, err
	}
	config, err := pgxpool.ParseConfig(p.DSN)
	if err != nil {
		return 0, err
	}
	config.ConnConfig.RuntimeParams["search_path"] = p.Schema
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer pool.Close()

	for _, way := range []struct {
		name   string
		byGORM []gormlock.TxOption
		bySQLC []pgxlock.TxOption
	}{
		{name: "without a lock"},
		{"with one key", []gormlock.TxOption{gormlock.Locking(numbers)}, []pgxlock.TxOption{pgxlock.Locking(numbers)}},
	} {
		if err := p.DB.WithContext(ctx).Exec("TRUNCATE invoices").Error; err != nil {
			return twice, err
		}
		err := rush(
			func() error { return withGORM(ctx, p.DB, way.byGORM...) },
			func() error { return withSQLC(ctx, pool, way.bySQLC...) },
		)
		if err != nil {
			return twice, err
		}
		var all, different int64
		if err := p.DB.WithContext(ctx).Raw("SELECT count(*), count(DISTINCT number) FROM invoices").Row().Scan(&all, &different); err != nil {
			return twice, err
		}
		_, _ = fmt.Fprintf(out, "%-14s  %d invoices, %d numbers\n", way.name, all, different)
		if way.byGORM == nil {
			twice = all - different
		} else if all != different {
			return twice, fmt.Errorf("%d numbers were given twice %s", all-different, way.name)
		}
	}
	return twice, nil
}

// rush runs each half with all its clerks.
func rush(halves ...func() error) error {
	var wg sync.WaitGroup
	errs := make(chan error, len(halves)*clerks)
	for _, add := range halves {
		for range clerks {
			wg.Go(func() {
				for range invoices {
					if err := add(); err != nil {
						errs <- err
						return
					}
				}
			})
		}
	}
	wg.Wait()
	close(errs)
	return <-errs
}
