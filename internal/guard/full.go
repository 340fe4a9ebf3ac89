package guard

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
)

// refuseFull fails a statement that would move a version past the largest one. If the caller named that version, for example by If-Match, the row
// may have another one: then the statement finds no row, and the judge says why.
func (b builder) refuseFull() {
	d := b.draft
	if v := &d.version; !d.built.bumps || !v.IsInteger() || !v.checked || v.choice != nil {
		return
	}
	rows := d.rows
	if d.isBulk() {
		rows = d.single[:]
	}
	for i := range rows {
		err := d.fullAt(b.Statement, &rows[i])
		if d.built.full = err != nil && d.version.given; d.built.full {
			return
		}
		if err != nil {
			fault.Add(b.DB, err)
			return
		}
	}
}

// fullAt is the error of moving a row's version if the row is expected at the largest version.
func (p *plan) fullAt(stmt *gorm.Statement, row *Row) error {
	v, at := &p.version, row.Expected
	if at.N < v.Largest || v.IsUnread(at) {
		return nil
	}
	var key []any
	if row.Struct.IsValid() {
		key = p.named(stmt, row).Key
	}
	return fmt.Errorf("gormlock: %s: version %d is %s", p.rowName(stmt, key), at.N, v.AtLargest())
}

// mayPassUnread reports whether a row whose version the statement moves may be at the number right before the one that means "not read".
func (v *versionGuard) mayPassUnread(d *draft) bool {
	rows := d.rows
	if d.isBulk() {
		rows = d.single[:]
	}
	known := v.checked && v.choice == nil
	for i := range rows {
		known = known && v.Loaded(rows[i].Expected)
		if known && v.BeforeUnread(rows[i].Expected) {
			return true
		}
	}
	return !known && v.MayPassUnread()
}
