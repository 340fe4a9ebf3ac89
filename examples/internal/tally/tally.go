// Package tally has many workers do something and adds up what they did.
package tally

import (
	"errors"
	"sync"
)

// Report is what one side did in a task.
type Report struct {
	Done   int64 // writes that are stored
	Amount int64 // moved by them
	Again  int64 // runs that came too late and were made again
}

// Up adds up what workers do, each of them so often. do gets the sum of the worker's number and the turn's, from 0.
func Up(workers, each int64, do func(n int64) (Report, error)) (sum Report, err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for worker := range workers {
		wg.Go(func() {
			for i := range each {
				r, failed := do(worker + i)
				mu.Lock()
				sum = Report{sum.Done + r.Done, sum.Amount + r.Amount, sum.Again + r.Again}
				err = errors.Join(err, failed)
				stop := err != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	return sum, err
}
