package models

import (
	"context"

	"gorm.io/gorm"
)

// Order has relations of each kind.
type Order struct {
	ID         int64
	A, B       int64
	Version    int64 `gormlock:"version"`
	CustomerID *int64
	Customer   *Customer
	Lines      []*Line
	Note       *Note
	Tags       []*Tag `gorm:"many2many:order_tags"`
}

// BeforeSave lets an order write another row, if its ctx says so.
func (*Order) BeforeSave(tx *gorm.DB) error {
	id, ok := tx.Statement.Context.Value(hookWrites{}).(int64)
	if !ok {
		return nil
	}
	return tx.Session(&gorm.Session{NewDB: true}).Model(&Tag{}).Where("id = ?", id).Update("b", ByHook).Error
}

type hookWrites struct{}

// ByHook is what hooks write into b.
const ByHook = 91

type (
	// Customer is what an order belongs to.
	Customer struct {
		ID      int64
		A, B    int64
		Version int64 `gormlock:"version"`
	}
	// Line is one of many of an order.
	Line struct {
		ID      int64
		A, B    int64
		Version int64 `gormlock:"version"`
		OrderID *int64
	}
	// Note is the one of an order.
	Note struct {
		ID      int64
		A, B    int64
		Version int64 `gormlock:"version"`
		OrderID *int64
	}
	// Tag is of many orders.
	Tag struct {
		ID      int64
		A, B    int64
		Version int64 `gormlock:"version"`
	}
)

// WithHook tells an order to write another row.
func WithHook(ctx context.Context, id int64) context.Context {
	return context.WithValue(ctx, hookWrites{}, id)
}
