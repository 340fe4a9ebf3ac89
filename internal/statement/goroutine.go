package statement

import (
	"bytes"
	"runtime"
	"strconv"
)

// Goroutine is the number of the running goroutine, which no other one has while it lives. It is 0 if the runtime does not tell. It ties statements of
// one call to each other to which GORM gives nothing in common.
func Goroutine() uint64 {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)]) // goroutine 7 [running]: …
	if len(fields) < 2 {
		return 0
	}
	number, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return number
}
