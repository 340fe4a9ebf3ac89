package clauses_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A query that was executed and found nothing is no sub-query. The statement around it fails, but it is not the one that found nothing: a
// program that reads ErrRecordNotFound creates the row.
func TestSubQuery_thatFoundNothing(t *testing.T) {
	t.Parallel()
	everyServer(t, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&order{Title: "open", Lines: []orderLine{{Qty: 1}, {Qty: 2}}}).Error)
		before, own := lines(t, db), errors.New("no tenant")
		for around, run := range aroundASubQuery {
			stand.InTx(t, db, func(tx *gorm.DB) {
				n := func() *gorm.DB { return tx.Session(&gorm.Session{NewDB: true}) }
				err := run(tx, n().Model(&order{}).Select("id").Where("id = 99").Take(&order{}))
				if !isRefusal(err) || errors.Is(err, gorm.ErrRecordNotFound) || !strings.Contains(err.Error(), "record not found") {
					t.Errorf("%s: %v", around, err)
				}
				both := n().Model(&order{}).Select("id").Scopes(func(q *gorm.DB) *gorm.DB {
					_, _ = q.AddError(own), q.AddError(gorm.ErrRecordNotFound)
					return q
				})
				if err := run(tx, both); errors.Is(err, gorm.ErrRecordNotFound) || err == nil || !strings.Contains(err.Error(), own.Error()) {
					t.Errorf("%s, with two errors: %v", around, err)
				}
				mine := n().Model(&order{}).Select("id").Scopes(func(q *gorm.DB) *gorm.DB {
					_ = q.AddError(own)
					return q
				})
				if err := run(tx, mine); !errors.Is(err, own) {
					t.Errorf("%s, with an error: %v", around, err)
				}
				stand.Equal(t, around, lines(t, tx), before)
			})
		}
		for around, run := range aroundASubQuery {
			stand.InTx(t, db, func(tx *gorm.DB) {
				err := run(tx, tx.Session(&gorm.Session{NewDB: true}).Model(7).Select("id"))
				if err == nil || !strings.Contains(err.Error(), "unsupported data type") {
					t.Errorf("%s, of no model: %v", around, err)
				}
			})
		}
	})
}
