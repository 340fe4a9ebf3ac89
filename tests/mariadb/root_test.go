package mariadb_test

import (
	"database/sql"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type cart struct {
	ID      int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type entry struct {
	ID     int64
	Code   string `gorm:"size:20;uniqueIndex"`
	Text   string `gorm:"size:20"`
	CartID int64
	Cart   *cart `gormlock:"root"`
}

// An upsert of a part that finds a row which was not there when it looked, or finds one by another unique index, would move that
// row away from a root whose version stands still: it is an error, and nothing is written.
func TestRoot_upsertFindsAnotherRow(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]mariaserver.Option{"RETURNING": nil, "like MySQL": {stand.LikeMySQL}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := mariaserver.Open(t, []any{&cart{}, &entry{}}, opts...)
			stand.Must(t, db.Create([]cart{{ID: 1}, {ID: 2}}).Error)
			rival := ""
			stand.Must(t, db.Callback().Create().Before("gorm:create").After("gormlock:before_write").Register("rival", func(tx *gorm.DB) {
				if tx.Statement.Table == "entries" && rival != "" {
					stand.Must(t, db.Exec(rival).Error)
					rival = ""
				}
			}))
			upsert := func(e entry) error {
				return db.Transaction(func(tx *gorm.DB) error {
					return tx.Clauses(clause.OnConflict{UpdateAll: true}).Omit(clause.Associations).Create(&e).Error
				}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			}
			rival = "INSERT INTO entries VALUES (9, 'rival', '', 2)"
			stand.MustStale(t, upsert(entry{ID: 9, Code: "mine", CartID: 1, Text: "x"}))
			for what, e := range map[string]entry{"a new key": {ID: 12, Code: "rival", CartID: 1}, "no key": {Code: "rival", CartID: 1}} {
				if err := upsert(e); err == nil || !strings.Contains(err.Error(), "unique index") {
					t.Errorf("%s: %v", what, err)
				}
			}
			stand.Equal(t, "part", stand.Row[entry](t, db, 9), entry{ID: 9, Code: "rival", CartID: 2})
			stand.Equal(t, "versions", stand.Row[cart](t, db, 1).Version+stand.Row[cart](t, db, 2).Version, 2)
			stand.Must(t, upsert(entry{ID: 9, Code: "rival", CartID: 1, Text: "moved"}))
			stand.Must(t, upsert(entry{Code: "other", CartID: 1}))
			stand.Equal(t, "part", stand.Row[entry](t, db, 9), entry{ID: 9, Code: "rival", CartID: 1, Text: "moved"})
			stand.Equal(t, "version of the root it left", stand.Row[cart](t, db, 2).Version, 2)
			stand.Equal(t, "version of its root", stand.Row[cart](t, db, 1).Version, 3)
		})
	}
}
