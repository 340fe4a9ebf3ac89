package once_test

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// A request that cannot be compared whole is an error. Otherwise two that differ could pass for one.
func TestOnce_requestThatIsNotCompared(t *testing.T) {
	t.Parallel()
	db := open(t)
	type listed struct{ Parts []any }
	bad := "amount=\xe9"
	for name, request := range map[string]any{
		"unexported":     hidden{1},
		"a zero one":     hidden{},
		"in a list":      listed{[]any{1, &hidden{2}}},
		"an error":       errors.New("amount=1"),
		"a body":         httptest.NewRequest("POST", "/", strings.NewReader("amount=1")).Body,
		"a buffer":       bytes.NewBufferString("amount=1"),
		"a named reader": struct{ io.Reader }{strings.NewReader("amount=1")},
		"text in it":     map[string]any{"amount": []string{bad}},
		"a key":          map[string]int{bad: 1},
	} {
		_, err := once(db, name, func(*gorm.DB) (int, error) { return 1, nil }, gormlock.ForRequest(request))
		if !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i, want := range []error{nil, gormlock.ErrOtherRequest} {
		_, err := once(db, "bytes", func(*gorm.DB) (int, error) { return 1, nil }, gormlock.ForRequest(bad[:len(bad)-i]+strings.Repeat("\xea", i)))
		if !errors.Is(err, want) {
			t.Errorf("texts that are not UTF-8: %v, want %v", err, want)
		}
	}
	if _, err := once(db, "bytes", func(*gorm.DB) (int, error) { return 1, nil }, gormlock.ForRequest([]byte(bad))); err != nil {
		t.Errorf("the same bytes: %v", err)
	}
}

// A result that JSON would store otherwise is an error.
func TestOnce_resultThatIsNotText(t *testing.T) {
	t.Parallel()
	db := open(t)
	err := db.Transaction(func(tx *gorm.DB) error {
		_, err := gormlock.Once(tx, "k", func(*gorm.DB) (map[string]string, error) { return map[string]string{"a": "\xe9"}, nil })
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "[]byte") {
		t.Error(err)
	}
}
