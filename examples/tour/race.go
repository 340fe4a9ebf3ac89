package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// together runs do on so many goroutines at once, each of them so many times or until its first error.
func together(goroutines, times int, do func() error) error {
	failed := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range failed {
		all.Go(func() {
			for range times {
				if failed[i] = do(); failed[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// rendezvous is a place where n goroutines wait for each other, once.
func rendezvous(ctx context.Context, n int32) func() error {
	var here atomic.Int32
	all := make(chan struct{})
	return func() error {
		if here.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
