package compat_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
)

// operation is something that a program does with GORM.
type operation struct {
	name string
	do   func(p *play)
}

// prepares says that the operation prepares statements by hand: in its transactions the plugin leaves that to the driver,
// which sends them in its own way, with fewer round trips.
func (o operation) prepares() bool { return strings.Contains(o.name, "prepared") }

// isRefused says that the operation has statements that cannot be prepared, or not any more: without the plugin they are not
// executed, with it they are refused when they are.
func (o operation) isRefused() bool { return o.name == "exec that fails" || o.name == "migrator" }

// migrates says that the operation goes through GORM's migrator, which walks over maps.
func (o operation) migrates() bool { return strings.Contains(o.name, "migrat") }

// preloads says that the operation reads children in an order that nobody asked for: that of the rows on disk, which a
// cleaning of the table changes.
func (o operation) preloads() bool { return strings.Contains(o.name, "preload") }

// inOrder asks for children in an order, which what is done with them afterwards follows.
func inOrder(children *gorm.DB) *gorm.DB { return children.Order("id") }

// play is an operation at work, with the plugin or without it. What it tells is to be the same.
type play struct {
	db     *gorm.DB
	ctx    context.Context
	simple bool // all is sent by the simple protocol
	told   []string
}

// tell notes values: errors by their text, all others as JSON.
func (p *play) tell(values ...any) {
	for _, v := range values {
		p.told = append(p.told, text(v))
	}
}

// ran tells how a statement ended and what it was.
func (p *play) ran(tx *gorm.DB, values ...any) {
	p.tell(tx.Error, tx.RowsAffected)
	if tx.Statement != nil {
		p.tell(tx.Statement.SQL.String(), tx.Statement.Table)
	}
	p.tell(values...)
}

// rows tells all that can be known of rows, and closes them.
func (p *play) rows(rows *sql.Rows, err error) {
	p.tell(err)
	if err != nil {
		return
	}
	defer rows.Close()
	for next := true; next; next = rows.NextResultSet() {
		types, err := rows.ColumnTypes()
		p.tell(err)
		for _, c := range types {
			length, hasLength := c.Length()
			precision, scale, hasPrecision := c.DecimalSize()
			nullable, hasNullable := c.Nullable()
			p.tell(c.Name(), c.DatabaseTypeName(), length, hasLength, precision, scale, hasPrecision, nullable, hasNullable, fmt.Sprint(c.ScanType()))
		}
		for rows.Next() {
			row := make([]any, len(types))
			for i := range row {
				row[i] = new(any)
			}
			p.tell(rows.Scan(row...))
			for _, cell := range row {
				p.tell(*cell.(*any))
			}
		}
		p.tell(rows.Err())
	}
	p.tell(rows.Err(), rows.Close())
}

func text(v any) string {
	switch v := v.(type) {
	case error:
		return "error: " + v.Error()
	case time.Time:
		return v.UTC().String()
	}
	told, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%v, as %v", v, err)
	}
	return fmt.Sprintf("%T %s", v, told)
}
