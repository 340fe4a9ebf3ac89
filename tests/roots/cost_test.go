package roots_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// desk belongs to a firm, which is a part of nothing.
type desk struct {
	ID      int64
	Qty     int64
	FirmID  int64
	Firm    *firm `gormlock:"root"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type plainDesk struct {
	ID, Qty, FirmID int64
	Firm            *firm `gormlock:"root"`
}

type untaggedDesk struct {
	ID      int64
	Qty     int64
	FirmID  int64
	Firm    *firm
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// What a part with the tag costs more than one without: a round trip for each root in a create, and one more, which finds and
// locks the rows, in an update or delete. That the roots of the rows written are observed costs none.
func TestRoot_roundTrips(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	db := stand.Versioned(t, []any{&firm{}, &desk{}, &plainDesk{}, &untaggedDesk{}}, pgtest.Through(dsn), pgtest.MaxConns(1))
	f := stand.Made(t, db, firm{})
	d, p, u := desk{FirmID: f.ID}, plainDesk{FirmID: f.ID}, untaggedDesk{FirmID: f.ID}
	stand.Must(t, db.Create(&d).Error)
	stand.Must(t, db.Create(&p).Error)
	stand.Must(t, db.Create(&u).Error)
	of := func(tx *gorm.DB) *gorm.DB { return tx.Where("firm_id = ?", f.ID) }
	for name, c := range map[string]struct {
		with, without func(tx *gorm.DB) error
		more          int
	}{
		"create": {more: 1, with: func(tx *gorm.DB) error { return tx.Create(&desk{FirmID: f.ID}).Error },
			without: func(tx *gorm.DB) error { return tx.Create(&untaggedDesk{FirmID: f.ID}).Error }},
		"create of a slice": {more: 1, with: func(tx *gorm.DB) error { return tx.Create([]*desk{{FirmID: f.ID}, {FirmID: f.ID}}).Error },
			without: func(tx *gorm.DB) error { return tx.Create([]*untaggedDesk{{FirmID: f.ID}, {FirmID: f.ID}}).Error }},
		"create, the root loaded": {more: 1, with: func(tx *gorm.DB) error {
			held := stand.Row[firm](t, tx, f.ID)
			return tx.Create(&desk{FirmID: f.ID, Firm: &held}).Error
		}, without: func(tx *gorm.DB) error {
			held := stand.Row[firm](t, tx, f.ID)
			return tx.Create(&untaggedDesk{FirmID: f.ID, Firm: &held}).Error
		}},
		"create, unversioned": {more: 1, with: func(tx *gorm.DB) error { return tx.Create(&plainDesk{FirmID: f.ID}).Error },
			without: func(tx *gorm.DB) error { return tx.Create(&untaggedDesk{FirmID: f.ID}).Error }},
		"update": {more: 2, with: func(tx *gorm.DB) error { return tx.Model(&d).Update("qty", 1).Error },
			without: func(tx *gorm.DB) error { return tx.Model(&u).Update("qty", 1).Error }},
		"update, unversioned": {more: 2, with: func(tx *gorm.DB) error { return tx.Model(&p).Update("qty", 1).Error },
			without: func(tx *gorm.DB) error { return tx.Model(&u).Update("qty", 1).Error }},
		"save": {more: 2, with: func(tx *gorm.DB) error { return tx.Save(&d).Error }, without: func(tx *gorm.DB) error { return tx.Save(&u).Error }},
		"save of a slice": {more: 2, with: func(tx *gorm.DB) error { return tx.Save([]*desk{&d}).Error },
			without: func(tx *gorm.DB) error { return tx.Save([]*untaggedDesk{&u}).Error }},
		"bulk": {more: 2, with: func(tx *gorm.DB) error { return of(tx).Model(&desk{}).Update("qty", 1).Error },
			without: func(tx *gorm.DB) error { return of(tx).Model(&untaggedDesk{}).Update("qty", 1).Error }},
		"delete": {more: 2, with: func(tx *gorm.DB) error { return of(tx).Where("qty = -1").Delete(&desk{}).Error },
			without: func(tx *gorm.DB) error { return of(tx).Where("qty = -1").Delete(&untaggedDesk{}).Error }},
		"the caller's RETURNING": {more: 3, with: func(tx *gorm.DB) error {
			return of(tx).Model(&[]desk{}).Clauses(clause.Returning{}).Update("qty", 1).Error
		}, without: func(tx *gorm.DB) error {
			return of(tx).Model(&[]untaggedDesk{}).Clauses(clause.Returning{}).Update("qty", 1).Error
		}},
	} {
		d, u = stand.Row[desk](t, db, d.ID), stand.Row[untaggedDesk](t, db, u.ID)
		with, _ := stand.RoundTrips(t, proxy, func() error { return db.Transaction(c.with) })
		without, _ := stand.RoundTrips(t, proxy, func() error { return db.Transaction(c.without) })
		if with-without > c.more {
			t.Errorf("%s: %d round trips, %d without the tag, want %d more at most", name, with, without, c.more)
		}
	}
}
