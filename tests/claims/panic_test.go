package claims_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// thrower reads itself, and panics.
type thrower string

func (*thrower) Scan(value any) error { panic(fmt.Sprint("cannot read ", value)) }

// throwingSerializer does so too.
type throwingSerializer struct{ schema.JSONSerializer }

func (throwingSerializer) Scan(_ context.Context, _ *schema.Field, _ reflect.Value, value any) error {
	panic(fmt.Sprint("cannot read ", value))
}

type throwingTask struct {
	ID    int64
	State string
	Value thrower
}

func (throwingTask) TableName() string { return "throwing" }

type throwingDocument struct {
	ID    int64
	State string
	Value []string `gorm:"serializer:throwing"`
}

func (throwingDocument) TableName() string { return "throwing" }

// A scanner that panics does so in the claim's caller: the connection is given back, and a transaction is rolled back.
func TestClaim_scannerThatPanics(t *testing.T) {
	t.Parallel()
	schema.RegisterSerializer("throwing", throwingSerializer{})
	db := stand.Versioned(t, nil)
	stand.MustDo(t, db.Exec("create table throwing (id bigint primary key, state text, value text); insert into throwing select i, 'ready', 'x' from generate_series(1, 3) i"))
	t.Run("a field's own", claimThatPanics[throwingTask](db))
	t.Run("of pointers", claimThatPanics[*throwingTask](db))
	t.Run("a serializer", claimThatPanics[throwingDocument](db))
}

func claimThatPanics[T any](db *gorm.DB) func(t *testing.T) {
	return func(t *testing.T) {
		pool, err := db.DB()
		stand.Must(t, err)
		caught := func(run func()) (said any) {
			defer func() { said = recover() }()
			run()
			return nil
		}
		claim := func(db *gorm.DB) error {
			_, err := gormlock.Claim[T](db, 2, map[string]any{"state": "taken"}, func(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready'") })
			return err
		}
		said := caught(func() { _ = db.Transaction(claim) })
		var taken int64
		stand.MustDo(t, db.Table("throwing").Where("state = 'taken'").Count(&taken))
		if used := pool.Stats().InUse; said != "cannot read x" || taken > 0 || used > 0 {
			t.Errorf("in a transaction: %v; %d rows are taken, %d connections in use", said, taken, used)
		}
		said = caught(func() { _ = claim(db.Where("id = 1")) })
		if used := pool.Stats().InUse; said != "cannot read x" || used > 0 {
			t.Errorf("without one: %v; %d connections are in use", said, used)
		}
		stand.MustDo(t, db.Exec("update throwing set state = 'ready'"))
	}
}
