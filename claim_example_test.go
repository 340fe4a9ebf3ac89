package gormlock_test

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// Workers take jobs of a table: each job goes to one of them, and nobody waits.
func ExampleClaim() {
	type Job struct {
		ID    int64
		State string `gorm:"default:ready"`
	}
	db, end := database([]Job{{ID: 1}, {ID: 2}, {ID: 3}})
	defer end()

	ready := func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("id") }
	for range 3 {
		jobs, err := gormlock.Claim[Job](db, 2, map[string]any{"state": "running"}, ready)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("claimed", len(jobs))
	}
	// Output:
	// claimed 2
	// claimed 1
	// claimed 0
}
