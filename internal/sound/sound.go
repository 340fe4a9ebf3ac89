// Package sound makes errors of callers safe to use in goroutines of the library, where a panic would end the process.
package sound

import (
	"errors"
	"fmt"
)

// Error returns err if its methods can be called. If one of them panics, as those of a nil pointer in an error do, it
// returns an error that says so.
func Error(err error) (usable error) {
	defer func() {
		if cause := recover(); cause != nil {
			usable = fmt.Errorf("a method of the error %T panicked: %v", err, cause)
		}
	}()
	if err != nil {
		_ = err.Error()
		_ = errors.Is(err, errOther) // calls Is and Unwrap
		var target *other
		_ = errors.As(err, &target) // calls As
	}
	return err
}

// other is an error that no caller has.
type other struct{}

func (*other) Error() string { return "" }

var errOther error = &other{}
