// Transfer moves money between accounts in many transactions at once. Locking the two accounts of a transfer one after
// the other, as they are named, runs into deadlocks: the transfer from a to b holds a and waits for b, the one from b
// to a holds b and waits for a. gormlock.LockRows locks them by the order of their keys, and there are none.
//
//	go -C examples run ./transfer
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
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/examples/internal/place"
)

// Account has a balance, and a version so that who did not lock it cannot overwrite it either.
type Account struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

const (
	accounts  = 5
	tellers   = 8
	transfers = 50 // of each teller
)

// oneByOne locks the accounts in the order in which the transfer names them.
func oneByOne(tx *gorm.DB, pair *[]Account) error {
	for i := range *pair {
		if err := gormlock.LockRow(tx, &(*pair)[i], gormlock.ForNoKeyUpdate); err != nil {
			return err
		}
	}
	return nil
}

// inOrder locks them by their keys. The elements stay in their places.
func inOrder(tx *gorm.DB, pair *[]Account) error {
	return gormlock.LockRows(tx, pair, gormlock.ForNoKeyUpdate)
}

// transfer moves amount in one transaction. An account does not go below zero.
func transfer(db *gorm.DB, lock func(*gorm.DB, *[]Account) error, from, to, amount int64) error {
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		pair := []Account{{ID: from}, {ID: to}}
		if err := lock(tx, &pair); err != nil {
			return err
		}
		if pair[0].Balance < amount {
			return nil
		}
		pair[0].Balance -= amount
		pair[1].Balance += amount
		if err := tx.Save(&pair[0]).Error; err != nil {
			return err
		}
		return tx.Save(&pair[1]).Error
	})
}

// rush lets all tellers transfer at once and counts the transfers that were done and those that died in a deadlock.
func rush(db *gorm.DB, lock func(*gorm.DB, *[]Account) error) (done, deadlocks int64, err error) {
	var wg sync.WaitGroup
	var dones, dead atomic.Int64
	errs := make(chan error, tellers)
	for teller := range int64(tellers) {
		wg.Go(func() {
			for i := range int64(transfers) {
				from := (teller + i) % accounts
				to := (from + 1 + (teller+i)%(accounts-1)) % accounts
				switch err := transfer(db, lock, 1+from, 1+to, 1+i%7); {
				case err == nil:
					dones.Add(1)
				case isDeadlock(err):
					dead.Add(1)
				default:
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return dones.Load(), dead.Load(), <-errs
}

func isDeadlock(err error) bool {
	var answer interface{ SQLState() string }
	return errors.As(err, &answer) && answer.SQLState() == "40P01"
}

func main() {
	place.Main("transfer", func(ctx context.Context) error {
		_, err := show(ctx, os.Stdout, place.Given())
		return err
	})
}

// show runs both ways. It returns how many deadlocks there were one by one, and fails if there was one in order or if
// money came or went.
func show(ctx context.Context, out io.Writer, dsn string) (deadlocks int64, err error) {
	p, err := newPlace(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Leave()) }()
	db := p.DB
	say(out, "%d tellers, %d transfers each, %d accounts\n\n", tellers, transfers, accounts)
	say(out, "locked            transfers  deadlocks     took\n")
	for _, way := range []struct {
		name string
		lock func(*gorm.DB, *[]Account) error
	}{{"one by one", oneByOne}, {"with LockRows", inOrder}} {
		began := time.Now()
		done, dead, err := rush(db.WithContext(ctx), way.lock)
		if err != nil {
			return 0, err
		}
		say(out, "%-16s  %9d  %9d  %7s\n", way.name, done, dead, time.Since(began).Round(time.Millisecond))
		if way.name == "one by one" {
			deadlocks = dead
		} else if dead > 0 {
			return deadlocks, fmt.Errorf("%d deadlocks %s", dead, way.name)
		}
	}
	var sum int64
	if err := db.Model(&Account{}).Select("sum(balance)").Scan(&sum).Error; err != nil {
		return deadlocks, err
	}
	say(out, "\nThe accounts hold %d, as before.\n", sum)
	if sum != 100*accounts {
		return deadlocks, fmt.Errorf("the accounts held %d and hold %d", 100*accounts, sum)
	}
	return deadlocks, nil
}

func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}

// newPlace makes the accounts.
func newPlace(ctx context.Context, dsn string) (*place.Place, error) {
	p, err := place.New(ctx, dsn, "transfer", stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		// The server looks for deadlocks after a second of waiting. Sooner, where it lets us, this is over sooner.
		_, _ = conn.Exec(ctx, "SET deadlock_timeout = '20ms'")
		return nil
	}))
	if err != nil {
		return nil, err
	}
	rows := make([]Account, accounts)
	for i := range rows {
		rows[i].Balance = 100
	}
	if err := p.DB.AutoMigrate(&Account{}); err != nil {
		return nil, errors.Join(err, p.Leave())
	}
	if err := p.DB.Create(&rows).Error; err != nil {
		return nil, errors.Join(err, p.Leave())
	}
	return p, nil
}
