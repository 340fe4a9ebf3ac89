package gormlocktest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
)

// receipt is a result, and errPay what a payment fails with.
type receipt struct{ Charge int64 }

var errPay = errors.New("no money")

// TestOnce: what is expected of Once is what gormlock sends.
func TestOnce(t *testing.T) {
	t.Parallel()
	const key = "charge/it's 42"
	request := map[string]int{"amount": 5}
	options := []gormlock.OnceOption{gormlock.ForRequest(request), gormlock.Expires(time.Hour)}
	pay := func(s *stage, opts ...gormlock.OnceOption) error {
		got, err := gormlock.Once(s.db, key, func(tx *gorm.DB) (receipt, error) {
			return receipt{7}, tx.Exec("INSERT INTO tasks VALUES (1, 'paid')").Error
		}, opts...)
		if err == nil && got != (receipt{7}) {
			err = fmt.Errorf("got %v", got)
		}
		return err
	}
	earlier := func(opts ...gormlock.OnceOption) func(s *stage) {
		return func(s *stage) {
			err := s.db.Transaction(func(tx *gorm.DB) error {
				_, err := gormlock.Once(tx, key, func(*gorm.DB) (receipt, error) { return receipt{7}, nil }, opts...)
				return err
			})
			if err != nil {
				s.Fatal(err)
			}
			s.forget()
		}
	}
	for name, c := range map[string]scene{
		"a new key": {
			expect: func(s *stage) {
				gormlocktest.ExpectOnce(s, s.mock, key)
				s.mock.ExpectExec("INSERT INTO tasks").WillReturnResult(gormlocktest.Refused)
				gormlocktest.ExpectOnceStored(s, s.mock, key, receipt{7})
			},
			do: func(s *stage) error { return pay(s) },
		},
		"a new key, with options": {
			expect: func(s *stage) {
				gormlocktest.ExpectOnce(s, s.mock, key, options...)
				s.mock.ExpectExec("INSERT INTO tasks").WillReturnResult(gormlocktest.Refused)
				gormlocktest.ExpectOnceStored(s, s.mock, key, receipt{7})
			},
			do: func(s *stage) error { return pay(s, options...) },
		},
		"a function that fails": {
			expect: func(s *stage) {
				gormlocktest.ExpectOnce(s, s.mock, key)
				gormlocktest.ExpectOnceUndo(s.mock)
			},
			do: func(s *stage) error {
				_, err := gormlock.Once(s.db, key, func(*gorm.DB) (int, error) { return 0, errPay })
				return err
			},
			want: errPay,
		},
		"a key that is there": {
			expect: func(s *stage) { gormlocktest.ExpectOnceFound(s, s.mock, key, receipt{7}) },
			real:   earlier(),
			do:     func(s *stage) error { return pay(s) },
		},
		"a key of this request": {
			expect: func(s *stage) { gormlocktest.ExpectOnceFound(s, s.mock, key, receipt{7}, options...) },
			real:   earlier(options...),
			do:     func(s *stage) error { return pay(s, options...) },
		},
		"a key of another request": {
			expect: func(s *stage) { gormlocktest.ExpectOnceFound(s, s.mock, key, receipt{7}, options...) },
			real:   earlier(options...),
			do:     func(s *stage) error { return pay(s, gormlock.ForRequest("another")) },
			want:   gormlock.ErrOtherRequest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.inTransaction().play(t)
		})
	}
}

// TestOnce_anotherKey: an expectation is of its key, its request and its result alone.
func TestOnce_another(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(tx *gorm.DB) error{
		"key":     func(tx *gorm.DB) error { _, err := gormlock.Once(tx, "k/2", one, gormlock.ForRequest(1)); return err },
		"request": func(tx *gorm.DB) error { _, err := gormlock.Once(tx, "k/1", one, gormlock.ForRequest(2)); return err },
		"result": func(tx *gorm.DB) error {
			_, err := gormlock.Once(tx, "k/1", func(*gorm.DB) (int, error) { return 2, nil }, gormlock.ForRequest(1))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene{}.mocked(t, &texts{})
			s.mock.ExpectBegin()
			gormlocktest.ExpectOnce(t, s.mock, "k/1", gormlock.ForRequest(1))
			gormlocktest.ExpectOnceStored(t, s.mock, "k/1", 1)
			s.mock.ExpectCommit()
			if err := s.db.Transaction(call); err == nil {
				t.Error("it is taken for what was expected")
			}
		})
	}
}

func one(*gorm.DB) (int, error) { return 1, nil }
