// A program that is no test, and asks for pretended locks.
package main

import (
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/gormlocktest"
)

func main() {
	err := gormlocktest.PretendLocks(nil)
	fmt.Print(errors.Is(err, gormlocktest.ErrNotATest))
}
