package once_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// payment is the effect, and version what a rollback has to put back.
type payment struct {
	ID      int64
	Key     string
	Amount  int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type receipt struct {
	Payment int64
	Note    string `json:",omitempty"`
	hidden  int
}

// pay is the function under Once: it stores a payment.
func pay(key string, amount int64) func(tx *gorm.DB) (receipt, error) {
	return func(tx *gorm.DB) (receipt, error) {
		p := payment{Key: key, Amount: amount}
		err := tx.Create(&p).Error
		return receipt{Payment: p.ID, hidden: 7}, err
	}
}

// once runs fn under the key in a transaction of its own.
func once[T any](db *gorm.DB, key string, fn func(tx *gorm.DB) (T, error), opts ...gormlock.OnceOption) (result T, err error) {
	err = db.Transaction(func(tx *gorm.DB) (err error) {
		result, err = gormlock.Once(tx, key, fn, opts...)
		return err
	})
	return result, err
}

func countPayments(t *testing.T, db *gorm.DB, want int64) {
	t.Helper()
	var n int64
	if err := db.Model(&payment{}).Count(&n).Error; err != nil || n != want {
		t.Errorf("%d payments are stored, want %d: %v", n, want, err)
	}
}

func countOnceKeys(t *testing.T, db *gorm.DB, want int64) {
	t.Helper()
	var n int64
	if err := db.Table("gormlock_once").Count(&n).Error; err != nil || n != want {
		t.Errorf("%d keys are stored, want %d: %v", n, want, err)
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]pgtest.Option{
		"plain": nil, "prepared": {pgtest.PrepareStmt()}, "simple protocol": {pgtest.SimpleProtocol()},
		"backslashes in strings": {pgtest.Param("standard_conforming_strings", "off")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, opts...)
			for i, key := range []string{"charge/1", `it's; DROP TABLE payments; -- \' "$1" ?`, "ключ/日本/🔑", strings.Repeat("k", 1024)} {
				first, err := once(db, key, pay(key, 5))
				if err != nil || first.Payment == 0 {
					t.Fatalf("%q: %+v, %v", key, first, err)
				}
				if first.hidden != 0 {
					t.Errorf("the first caller sees %+v, the others do not", first)
				}
				for range 2 {
					again, err := once(db, key, func(*gorm.DB) (receipt, error) {
						t.Error("it ran again")
						return receipt{}, nil
					})
					if err != nil || again != first {
						t.Errorf("%q: %+v, %v, want %+v", key, again, err, first)
					}
				}
				countPayments(t, db, int64(i+1))
			}
			countOnceKeys(t, db, 4)
		})
	}
}

func TestOnce_twiceInOneTransaction(t *testing.T) {
	t.Parallel()
	db := open(t)
	err := db.Transaction(func(tx *gorm.DB) error {
		a, err := gormlock.Once(tx, "a", pay("a", 1))
		if err != nil {
			return err
		}
		b, err := gormlock.Once(tx, "b", func(tx *gorm.DB) (receipt, error) {
			again, err := gormlock.Once(tx, "a", pay("a", 1)) // nested, another key
			if err == nil && again != a {
				t.Errorf("%+v, want %+v", again, a)
			}
			if err == nil {
				_, err = gormlock.Once(tx, "c", pay("c", 1))
			}
			return again, err
		})
		if b != a {
			t.Errorf("%+v, want %+v", b, a)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	countPayments(t, db, 2)
	countOnceKeys(t, db, 3)
}

// The same key inside of its own function cannot have a result yet.
func TestOnce_insideOfItself(t *testing.T) {
	t.Parallel()
	db := open(t)
	_, err := once(db, "k", func(tx *gorm.DB) (receipt, error) {
		return gormlock.Once(tx, "k", pay("k", 1))
	})
	if err == nil || !strings.Contains(err.Error(), `"k": there is no result`) {
		t.Error(err)
	}
	countOnceKeys(t, db, 0)
}

var errPay = errors.New("the card was declined")

// What fails leaves nothing, in a transaction that goes on and is committed, and memory is as it was.
func TestOnce_failureLeavesNothing(t *testing.T) {
	t.Parallel()
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	for name, c := range map[string]struct {
		fn   func(tx *gorm.DB) (any, error)
		says string
	}{
		"an error":          {func(*gorm.DB) (any, error) { return nil, errPay }, errPay.Error()},
		"an SQL error":      {func(tx *gorm.DB) (any, error) { return nil, tx.Exec("select 1/0").Error }, "22012"},
		"a dropped one":     {func(tx *gorm.DB) (any, error) { tx.Exec("select 1/0"); return 1, nil }, "25P02"},
		"a channel":         {func(*gorm.DB) (any, error) { return make(chan int), nil }, "cannot be stored: json: unsupported type"},
		"a cycle":           {func(*gorm.DB) (any, error) { return cyclic, nil }, "cannot be stored"},
		"a NaN":             {func(*gorm.DB) (any, error) { return math.NaN(), nil }, "cannot be stored"},
		"much":              {func(*gorm.DB) (any, error) { return strings.Repeat("x", 1<<20), nil }, "the result has 1048578 bytes, at most 1048576 are allowed"},
		"unexported fields": {func(*gorm.DB) (any, error) { return hidden{7}, nil }, "once_test.hidden has no field that JSON stores: export them"},
		"zero ones":         {func(*gorm.DB) (any, error) { return hidden{}, nil }, "once_test.hidden has no field that JSON stores"},
		"inside of another": {func(*gorm.DB) (any, error) { return map[string]any{"a": []*kept{{Of: hidden{7}}}}, nil }, "once_test.hidden has no field that JSON stores"},
		"an error as value": {func(*gorm.DB) (any, error) { return errPay, nil }, "errors.errorString has no field that JSON stores"},
		"a number by value": {func(*gorm.DB) (any, error) { return *big.NewInt(7), nil }, "big.Int has no field that JSON stores"},
		"a stale write":     {func(tx *gorm.DB) (any, error) { _ = tx.Save(&payment{ID: 1, Version: 9}).Error; return 1, nil }, "stale"},
		"a rollback before": {func(tx *gorm.DB) (any, error) { return 1, tx.RollbackTo("before").Error }, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			other := payment{Key: "other"}
			if err := db.Create(&other).Error; err != nil {
				t.Fatal(err)
			}
			before := other
			err := db.Transaction(func(tx *gorm.DB) error {
				tx.SavePoint("before")
				_, err := gormlock.Once(tx, "k", func(tx *gorm.DB) (any, error) {
					if err := errors.Join(tx.Create(&payment{Key: "k"}).Error, tx.Model(&other).Update("amount", 3).Error); err != nil {
						return nil, err
					}
					return c.fn(tx)
				})
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %q", err, c.says)
				}
				if name == "a rollback before" { // its own savepoint is gone, and with it the way back
					tx.RollbackTo("before")
				}
				return tx.Create(&payment{Key: "after"}).Error
			})
			if err != nil {
				t.Error(err)
			}
			if other != before && name != "a rollback before" {
				t.Errorf("%+v, want %+v", other, before)
			}
			countPayments(t, db, 2)
			countOnceKeys(t, db, 0)
			if _, err := once(db, "k", pay("k", 1)); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// V1: so is what was changed in memory where only Transaction knows of the transaction.
func TestOnce_failureWithPlainTransactions(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.PlainTransactions())))
	if err := errors.Join(db.AutoMigrate(&payment{}), gormlock.MigrateOnce(db)); err != nil {
		t.Fatal(err)
	}
	p := payment{Key: "p"}
	if err := db.Create(&p).Error; err != nil {
		t.Fatal(err)
	}
	before := p
	fails := func(tx *gorm.DB) (int, error) { return 0, errors.Join(tx.Model(&p).Update("amount", 3).Error, errPay) }
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		_, err := gormlock.Once(tx, "outer", func(tx *gorm.DB) (int, error) {
			if _, err := gormlock.Once(tx, "inner", fails); !errors.Is(err, errPay) || p != before {
				t.Errorf("%v, %+v, want %+v", err, p, before)
			}
			return fails(tx)
		})
		if !errors.Is(err, errPay) || p != before {
			t.Errorf("%v, %+v, want %+v", err, p, before)
		}
		if _, err := gormlock.Once(tx, "kept", func(tx *gorm.DB) (int, error) { return 0, tx.Model(&p).Update("amount", 4).Error }); err != nil {
			t.Error(err)
		}
		return nil
	})
	if err != nil || p.Version != before.Version+1 {
		t.Errorf("%v, %+v", err, p)
	}
	p.Amount = 5
	if err := db.Save(&p).Error; err != nil {
		t.Error(err)
	}
}

func TestOnce_panic(t *testing.T) {
	t.Parallel()
	db := open(t)
	for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		err := db.Transaction(func(tx *gorm.DB) error {
			ended := make(chan any)
			go func() {
				defer func() { ended <- recover() }()
				_, _ = gormlock.Once(tx, name, func(tx *gorm.DB) (int, error) {
					tx.Create(&payment{Key: name})
					leave()
					return 0, nil
				})
			}()
			if said := <-ended; name == "panic" && said != "boom" {
				t.Errorf("the panic is %v", said)
			}
			return nil
		})
		if err != nil {
			t.Error(name, err)
		}
	}
	countPayments(t, db, 0)
	countOnceKeys(t, db, 0)
}

// A function that ends the transaction stores its effect without a result, and every later call says so.
func TestOnce_functionThatCommits(t *testing.T) {
	t.Parallel()
	db := open(t)
	tx := db.Begin()
	_, err := gormlock.Once(tx, "k", func(tx *gorm.DB) (receipt, error) {
		r, err := pay("k", 1)(tx)
		return r, errors.Join(err, tx.Commit().Error)
	})
	if !errors.Is(err, sql.ErrTxDone) {
		t.Error(err)
	}
	if _, err := once(db, "k", pay("k", 1)); err == nil || !strings.Contains(err.Error(), "or ended the transaction it ran in") {
		t.Error(err)
	}
	countPayments(t, db, 1)
}

func TestOnce_request(t *testing.T) {
	t.Parallel()
	db := open(t)
	type body struct{ Amount int }
	first, err := once(db, "k", pay("k", 1), gormlock.ForRequest(body{5}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := once(db, "without", pay("without", 1)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  string
		opts []gormlock.OnceOption
		want error
	}{
		"the same":        {"k", []gormlock.OnceOption{gormlock.ForRequest(body{5})}, nil},
		"the same bytes":  {"k", []gormlock.OnceOption{gormlock.ForRequest([]byte(`{"Amount":5}`))}, nil},
		"not compared":    {"k", nil, nil},
		"another":         {"k", []gormlock.OnceOption{gormlock.ForRequest(body{6})}, gormlock.ErrOtherRequest},
		"stored without":  {"without", []gormlock.OnceOption{gormlock.ForRequest(body{5})}, gormlock.ErrOtherRequest},
		"a map for a key": {"k", []gormlock.OnceOption{gormlock.ForRequest(map[string]any{"Amount": 5})}, nil},
	} {
		err := db.Transaction(func(tx *gorm.DB) error {
			got, err := gormlock.Once(tx, c.key, pay("k", 1), c.opts...)
			if !errors.Is(err, c.want) || c.want == nil && c.key == "k" && got != first {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			return tx.Find(&payment{}).Error // usable
		})
		if err != nil {
			t.Error(name, err)
		}
	}
	if gormlock.IsRetryable(gormlock.ErrOtherRequest) {
		t.Error("another request is no reason to try again")
	}
	countPayments(t, db, 2)
}

// What was stored is what comes back: byte for byte, or an error.
func TestOnce_results(t *testing.T) {
	t.Parallel()
	db := open(t)
	same := func(name string, run func() (any, error), want any) {
		for i := range 2 {
			if got, err := run(); err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
				t.Errorf("%s, call %d: %#v, %v; want %#v", name, i+1, got, err, want)
			}
		}
	}
	same("raw", func() (any, error) {
		return once(db, "raw", func(*gorm.DB) (json.RawMessage, error) { return json.RawMessage(`{"b":1.00,"a":[],"b":2}`), nil })
	}, json.RawMessage(`{"b":1.00,"a":[],"b":2}`))
	same("NUL", func() (any, error) {
		return once(db, "nul", func(*gorm.DB) (string, error) { return "a\x00b", nil })
	}, "a\x00b")
	same("a nil pointer", func() (any, error) {
		return once(db, "nil", func(*gorm.DB) (*receipt, error) { return nil, nil })
	}, (*receipt)(nil))
	same("nothing", func() (any, error) {
		return once(db, "nothing", func(*gorm.DB) (struct{}, error) { return struct{}{}, nil })
	}, struct{}{})
	same("a large number", func() (any, error) {
		return once(db, "large", func(*gorm.DB) (int64, error) { return math.MaxInt64, nil })
	}, int64(math.MaxInt64))

	if _, err := once(db, "raw", func(*gorm.DB) (int, error) { return 1, nil }); err == nil || !strings.Contains(err.Error(), "the stored result is no int") {
		t.Errorf("another type: %v", err)
	}
	if _, err := once(db, "error", func(*gorm.DB) (error, error) { return &fs.PathError{Op: "pay"}, nil }); err == nil || !strings.Contains(err.Error(), "is no ") {
		t.Errorf("a type that JSON cannot fill: %v", err)
	}
	countOnceKeys(t, db, 5)
}

func TestOnce_refuses(t *testing.T) {
	t.Parallel()
	db := open(t)
	bare := pgtest.Open(t, pgtest.Schema())
	lite, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pool, err := lite.DB(); err == nil {
			_ = pool.Close()
		}
	})
	if err := lite.Use(gormlock.New()); err != nil {
		t.Fatal(err)
	}
	fn := pay("k", 1)
	for name, c := range map[string]struct {
		db   *gorm.DB
		key  string
		fn   func(*gorm.DB) (receipt, error)
		opts []gormlock.OnceOption
		want error
	}{
		"no transaction":      {db: db, key: "k", fn: fn, want: gormlock.ErrNoTransaction},
		"no db":               {db: nil, key: "k", fn: fn, want: gorm.ErrInvalidDB},
		"no plugin":           {db: bare, key: "k", fn: fn, want: gormlock.ErrNotInstalled},
		"SQLite":              {db: lite, key: "k", fn: fn, want: gormlock.ErrNotPostgres},
		"no function":         {db: db, key: "k", want: gormlock.ErrOption},
		"an empty key":        {db: db, key: "", fn: fn, want: gormlock.ErrOption},
		"a long key":          {db: db, key: strings.Repeat("k", 1025), fn: fn, want: gormlock.ErrOption},
		"a key with NUL":      {db: db, key: "a\x00", fn: fn, want: gormlock.ErrOption},
		"a key of bytes":      {db: db, key: "a\xff", fn: fn, want: gormlock.ErrOption},
		"a nil option":        {db: db, key: "k", fn: fn, opts: []gormlock.OnceOption{nil}, want: gormlock.ErrOption},
		"an expiry before":    {db: db, key: "k", fn: fn, opts: []gormlock.OnceOption{gormlock.Expires(0)}, want: gormlock.ErrOption},
		"a db with an error":  {db: db.Where("x").Session(&gorm.Session{}), key: "k", fn: fn, want: errPay},
		"a request of a func": {db: db, key: "k", fn: fn, opts: []gormlock.OnceOption{gormlock.ForRequest(func() {})}, want: nil},
	} {
		if errors.Is(c.want, errPay) {
			c.db.Error = errPay
		}
		_, err := gormlock.Once(c.db, c.key, c.fn, c.opts...)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	countPayments(t, db, 0)
}

func TestOnce_withoutTheTable(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	err := db.Transaction(func(tx *gorm.DB) error {
		if _, err := gormlock.Once(tx, "k", pay("k", 1)); err == nil || !strings.Contains(err.Error(), "MigrateOnce creates the table") {
			t.Error(err)
		}
		return tx.Exec("select 1").Error
	})
	if err != nil {
		t.Errorf("the transaction is not usable: %v", err)
	}
}

func TestOnce_inATransactionThatIsOver(t *testing.T) {
	t.Parallel()
	db := open(t)
	tx := db.Begin()
	tx.Rollback()
	if _, err := gormlock.Once(tx.Session(&gorm.Session{}), "k", pay("k", 1)); !errors.Is(err, sql.ErrTxDone) {
		t.Error(err)
	}
	tx = db.Begin()
	defer tx.Rollback()
	tx.Exec("select 1/0")
	if _, err := gormlock.Once(tx, "k", pay("k", 1)); err == nil || !strings.Contains(err.Error(), "25P02") || strings.Contains(err.Error(), "lost") {
		t.Error(err)
	}
}

// G17
func TestOnce_dryRun(t *testing.T) {
	t.Parallel()
	db := open(t)
	dry := db.Session(&gorm.Session{DryRun: true})
	ran, err := gormlock.Once(dry, "k", func(tx *gorm.DB) (bool, error) { return tx.DryRun, nil })
	if err != nil || !ran {
		t.Error(ran, err)
	}
	if err := gormlock.MigrateOnce(dry); err != nil {
		t.Error(err)
	}
	if _, err := gormlock.SweepOnce(dry, time.Hour, 1); err != nil {
		t.Error(err)
	}
	countOnceKeys(t, db, 0)
}

// The ctx ends while the function runs: nothing stays, however the error is taken.
func TestOnce_contextEnds(t *testing.T) {
	t.Parallel()
	db := open(t)
	for name, call := range map[string]func(ctx context.Context, tx *gorm.DB, end func()) error{
		"the call's": func(ctx context.Context, tx *gorm.DB, end func()) error {
			_, err := gormlock.Once(tx.WithContext(ctx), name(ctx), func(tx *gorm.DB) (receipt, error) {
				r, err := pay("k", 1)(tx)
				end()
				return r, err
			})
			return err
		},
		"the function's": func(ctx context.Context, tx *gorm.DB, end func()) error {
			_, err := gormlock.Once(tx, name(ctx), func(tx *gorm.DB) (receipt, error) {
				r, err := pay("k", 1)(tx.WithContext(ctx))
				end()
				return r, errors.Join(err, tx.WithContext(ctx).Find(&[]payment{}).Error)
			})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Transaction(func(tx *gorm.DB) error {
			if err := call(ctx, tx, cancel); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			return nil // dropped
		})
		if err != nil { // it goes on without what the call did
			t.Errorf("%s: the commit: %v", name, err)
		}
		cancel()
	}
	countPayments(t, db, 0)
	countOnceKeys(t, db, 0)
}

func name(context.Context) string { return "k" }

// Two messages besides those of the function for the first call, three for a later one: none only for a savepoint.
func TestRoundTrips_Once(t *testing.T) {
	t.Parallel()
	for _, m := range stand.Modes {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.SchemaDSN(t)
			if err := gormlock.MigrateOnce(pgtest.Open(t, pgtest.Through(dsn))); err == nil {
				t.Fatal("a db without the plugin")
			}
			proxy, tapped := pgtest.Tap(t, dsn)
			db := open(t, append(m.Opts, pgtest.Through(tapped), pgtest.MaxConns(1))...)
			key := 0
			call := func() error {
				_, err := once(db, fmt.Sprint(key), func(*gorm.DB) (int, error) { return 1, nil }, gormlock.ForRequest(1), gormlock.Expires(time.Hour))
				return err
			}
			first, executed := stand.RoundTrips(t, proxy, func() error { key++; return call() })
			if first != 2+2 { // BEGIN and COMMIT
				t.Errorf("the first call: %d round trips: %q", first, executed)
			}
			again, executed := stand.RoundTrips(t, proxy, call)
			if again != 2+3 {
				t.Errorf("a later call: %d round trips: %q", again, executed)
			}
			failed, executed := stand.RoundTrips(t, proxy, func() error {
				return db.Transaction(func(tx *gorm.DB) error {
					if _, err := gormlock.Once(tx, "fails", func(*gorm.DB) (int, error) { return 0, errPay }); !errors.Is(err, errPay) {
						return fmt.Errorf("want %w", errPay)
					}
					return nil
				})
			})
			if failed != 2+2 {
				t.Errorf("a call that fails: %d round trips: %q", failed, executed)
			}
		})
	}
}
