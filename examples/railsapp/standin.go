package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/examples/internal/place"
	"github.com/gormlock/gormlock/examples/internal/tally"
)

// What ActiveRecord 6.1.7 sent when it ran shop.rb.
const (
	createAccounts = `CREATE TABLE "accounts" ("id" bigserial primary key, "balance" integer DEFAULT 0 NOT NULL, "lock_version" integer DEFAULT 0 NOT NULL, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL)`
	createInvoices = `CREATE TABLE "invoices" ("id" bigserial primary key, "number" integer NOT NULL, "issued_by" character varying)`
	begin          = `BEGIN`
	commit         = `COMMIT`
	rollback       = `ROLLBACK`
	find           = `SELECT "accounts".* FROM "accounts" WHERE "accounts"."id" = $1 LIMIT $2`
	lockFound      = find + ` FOR UPDATE`
	update         = `UPDATE "accounts" SET "balance" = $1, "updated_at" = $2, "lock_version" = $3 WHERE "accounts"."id" = $4 AND "accounts"."lock_version" = $5`
	maximum        = `SELECT MAX("invoices"."number") FROM "invoices"`
	insert         = `INSERT INTO "invoices" ("number", "issued_by") VALUES ($1, $2) RETURNING "id"`
	tryLock        = `SELECT pg_try_advisory_lock(1781477269,0)`
	unlock         = `SELECT pg_advisory_unlock(1781477269,0)`
)

// standIn sends the statements of shop.rb where there is no Ruby.
type standIn struct {
	sessions place.Sessions
}

func newStandIn(ctx context.Context, config *pgx.ConnConfig) (*standIn, error) {
	sessions, err := place.Connect(ctx, config, workers)
	if err != nil {
		return nil, err
	}
	if err := run(ctx, sessions[0], createAccounts, createInvoices); err != nil {
		return nil, errors.Join(err, sessions.Close())
	}
	return &standIn{sessions}, nil
}

func (s *standIn) name() string {
	return "A stand-in for Rails, with the statements of ActiveRecord 6.1.7,"
}

func (s *standIn) close() error { return s.sessions.Close() }

func (s *standIn) perform(ctx context.Context, task string, accounts []int64) (tally.Report, error) {
	free := s.sessions.Free()
	return tally.Up(workers, each, func(n int64) (tally.Report, error) {
		conn := <-free
		defer func() { free <- conn }()
		id := accounts[n%int64(len(accounts))]
		switch task {
		case "deposits":
			return railsDeposit(ctx, conn, id, 1+n%7)
		case "withdrawals":
			return railsWithdraw(ctx, conn, id, 1+n%5)
		default:
			return railsInvoice(ctx, conn)
		}
	})
}

func railsDeposit(ctx context.Context, conn *pgx.Conn, id, amount int64) (tally.Report, error) {
	r := tally.Report{Done: 1, Amount: amount}
	for ; ; r.Again++ {
		balance, version, err := read(ctx, conn, find, id)
		if err != nil {
			return tally.Report{}, err
		}
		if err := run(ctx, conn, begin); err != nil {
			return tally.Report{}, err
		}
		updated, err := conn.Exec(ctx, update, balance+amount, time.Now().UTC(), version+1, id, version)
		if err != nil {
			return tally.Report{}, err
		}
		if updated.RowsAffected() == 1 {
			return r, run(ctx, conn, commit)
		}
		if err := run(ctx, conn, rollback); err != nil { // ActiveRecord::StaleObjectError
			return tally.Report{}, err
		}
	}
}

func railsWithdraw(ctx context.Context, conn *pgx.Conn, id, amount int64) (tally.Report, error) {
	if _, _, err := read(ctx, conn, find, id); err != nil {
		return tally.Report{}, err
	}
	if err := run(ctx, conn, begin); err != nil {
		return tally.Report{}, err
	}
	balance, version, err := read(ctx, conn, lockFound, id)
	if err != nil {
		return tally.Report{}, err
	}
	if balance < amount {
		return tally.Report{}, run(ctx, conn, commit)
	}
	if _, err := conn.Exec(ctx, update, balance-amount, time.Now().UTC(), version+1, id, version); err != nil {
		return tally.Report{}, err
	}
	return tally.Report{Done: 1, Amount: amount}, run(ctx, conn, commit)
}

func railsInvoice(ctx context.Context, conn *pgx.Conn) (tally.Report, error) {
	for held := false; !held; {
		if err := conn.QueryRow(ctx, tryLock).Scan(&held); err != nil {
			return tally.Report{}, err
		}
		if !held {
			pause(ctx, 5*time.Millisecond)
		}
	}
	var last *int64
	if err := conn.QueryRow(ctx, maximum).Scan(&last); err != nil {
		return tally.Report{}, err
	}
	next := int64(1)
	if last != nil {
		next += *last
	}
	if err := run(ctx, conn, begin); err != nil {
		return tally.Report{}, err
	}
	if _, err := conn.Exec(ctx, insert, next, "Rails"); err != nil {
		return tally.Report{}, err
	}
	return tally.Report{Done: 1}, run(ctx, conn, commit, unlock)
}

func read(ctx context.Context, conn *pgx.Conn, sql string, id int64) (balance, version int64, err error) {
	var created, updated time.Time
	err = conn.QueryRow(ctx, sql, id, 1).Scan(&id, &balance, &version, &created, &updated)
	return balance, version, err
}

func run(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
