package claims_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// parcel is of a table in which its key is not unique.
type parcel struct {
	ID      int64
	State   string
	Part    int
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A claim that changed rows which it did not find is an error, and a transaction is rolled back whatever is made of it.
func TestClaim_keyThatIsNotUnique(t *testing.T) {
	t.Parallel()
	const columns = "(id bigint, state text, part int, version bigint not null default 1"
	for name, table := range map[string]string{
		"partitioned": "create table parcels " + columns + ", primary key (id, part)) partition by list (part);" +
			"create table parcels1 partition of parcels for values in (1); create table parcels2 partition of parcels for values in (2);",
		"inherited": "create table parcels " + columns + ", primary key (id)); create table parcels2 (primary key (id)) inherits (parcels);",
	} {
		second := "parcels"
		if name == "inherited" {
			second = "parcels2"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, nil)
			stand.MustDo(t, db.Exec(table+"insert into parcels select i, 'ready', 1 from generate_series(1, 5) i; insert into "+second+" values (2, 'ready', 2)"))
			ready := func(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready' and part = 1").Order("id") }
			for _, limit := range []int{3, 30, 300} { // more rows than the limit; one place twice, to the server and here
				err := db.Transaction(func(tx *gorm.DB) error {
					rows, err := gormlock.Claim[parcel](tx, limit, map[string]any{"state": "taken"}, ready)
					if err == nil || stand.FromServer(err) || !strings.Contains(err.Error(), "not unique") || len(rows) < 4 {
						t.Errorf("limit %d: %v, %v", limit, rows, err)
					}
					return nil
				})
				var taken int64
				stand.MustDo(t, db.Model(&parcel{}).Where("state = 'taken'").Count(&taken))
				if err == nil || !strings.Contains(err.Error(), "not unique") || taken > 0 {
					t.Errorf("limit %d: the transaction ended with %v, %d rows are taken", limit, err, taken)
				}
			}
			err := db.Transaction(func(tx *gorm.DB) error {
				inner := tx.Transaction(func(tx *gorm.DB) error {
					_, err := gormlock.Claim[parcel](tx, 3, map[string]any{"state": "taken"}, ready)
					return err
				})
				if inner == nil {
					t.Error("no error")
				}
				rows, err := gormlock.Claim[parcel](tx, 1, map[string]any{"state": "taken"}, ready)
				if err != nil || len(rows) != 1 || rows[0].ID != 1 {
					t.Error("after the savepoint", rows, err)
				}
				return nil
			})
			stand.Must(t, err)
			if rows, err := gormlock.Claim[parcel](db, 3, map[string]any{"state": "done"}, ready); err == nil || len(rows) != 4 {
				t.Error("without a transaction", rows, err)
			}
		})
	}
}

// A transaction that gormlock did not see begin is refused by the server.
func TestClaim_keyThatIsNotUniqueUnseen(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, nil)
	stand.MustDo(t, db.Exec(`create table parcels (id bigint, state text, part int, version bigint not null default 1);
		insert into parcels values (1, 'ready', 1), (1, 'ready', 2)`))
	pool, err := db.DB()
	stand.Must(t, err)
	tx, err := pool.BeginTx(t.Context(), nil)
	stand.Must(t, err)
	unseen := db.Session(&gorm.Session{NewDB: true})
	unseen.Statement.ConnPool = tx
	if _, err := gormlock.Claim[parcel](unseen, 1, map[string]any{"state": "taken"}); err == nil || !strings.Contains(err.Error(), "not unique") {
		t.Error(err)
	}
	if err := tx.Commit(); err == nil {
		t.Error("it is committed")
	}
}
