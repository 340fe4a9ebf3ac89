package sound_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/sound"
)

type textless struct{ text string }

func (e *textless) Error() string { return e.text }

type unwrapped struct{ cause error }

func (e *unwrapped) Error() string { return "unwrapped" }
func (e *unwrapped) Unwrap() error { return e.cause }

type compared struct{ is error }

func (e *compared) Error() string     { return "compared" }
func (e *compared) Is(err error) bool { return e.is == err }

type converted struct{ is bool }

func (e *converted) Error() string { return "converted" }
func (e *converted) As(any) bool   { return e.is }

func TestError(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, io.EOF, fmt.Errorf("read: %w", io.EOF), &unwrapped{io.EOF}, &compared{}, &converted{}} {
		if got := sound.Error(err); got != err { //nolint:errorlint // the same one
			t.Errorf("%v became %v", err, got)
		}
	}
	for name, err := range map[string]error{
		"textless":  (*textless)(nil),
		"unwrapped": (*unwrapped)(nil),
		"compared":  (*compared)(nil),
		"converted": (*converted)(nil),
		"joinError": errors.Join(io.EOF, (*textless)(nil)),
		"wrapError": fmt.Errorf("wrapped: %w", (*unwrapped)(nil)),
	} {
		got := sound.Error(err)
		if got == nil || !strings.Contains(got.Error(), name+" panicked") || !strings.Contains(got.Error(), "nil pointer") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
