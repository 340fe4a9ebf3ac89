package pgtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
)

// ofGORM is the goroutine of GORM's cache of prepared statements, which never ends it.
const ofGORM = "gorm.io/gorm/internal/lru.NewLRU[...].func1"

// LeftGoroutines returns an error that shows the goroutines that run besides the caller's, after it gave them two seconds to end. Goroutines of the
// runtime, of package testing and of GORM may stay, and so may those with one of the functions mayStay on their stack. A function is named as in a
// stack trace.
func LeftGoroutines(mayStay ...string) error {
	mayStay = append([]string{ofGORM}, mayStay...)
	var left []string
	err := poll(context.Background(), 2*time.Second, func() (bool, error) {
		left = leftOf(stacks(), mayStay)
		return len(left) == 0, nil
	})
	if errors.Is(err, errTooLong) {
		return fmt.Errorf("goroutines are left (%d):\n%s", len(left), strings.Join(left, "\n\n"))
	}
	return err
}

// stacks are the traces of all goroutines, the caller's first.
func stacks() []string {
	for size := 64 << 10; ; size *= 2 {
		buffer := make([]byte, size)
		if n := runtime.Stack(buffer, true); n < size {
			return strings.Split(strings.TrimSpace(string(buffer[:n])), "\n\n")
		}
	}
}

// leftOf are the traces of goroutines that should have ended. The first is the caller's own.
func leftOf(stacks, mayStay []string) (left []string) {
	for _, stack := range stacks[1:] {
		if !mayStayAs(stack, mayStay) {
			left = append(left, stack)
		}
	}
	return left
}

func mayStayAs(stack string, mayStay []string) bool {
	header, calls, _ := strings.Cut(stack, "\n")
	state := header[strings.Index(header, "[")+1:]
	switch {
	case strings.HasPrefix(state, "syscall"): // of the runtime, if C code is used
		return true
	case strings.HasPrefix(calls, "testing.") && strings.HasPrefix(state, "chan receive"): // waits for a test to end
		return true
	case strings.HasPrefix(calls, "os/signal."), strings.Contains(calls, "runtime.ensureSigM"):
		return true
	}
	for line := range strings.Lines(calls) {
		for _, function := range mayStay {
			if strings.HasPrefix(line, function+"(") {
				return true
			}
		}
	}
	return false
}
