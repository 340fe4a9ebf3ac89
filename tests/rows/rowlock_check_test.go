package rows_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestG22_RowLockMisfits: what PostgreSQL could not lock the rows of is refused before it is asked, with a cure, and
// the transaction goes on. V16.
func TestG22_RowLockMisfits(t *testing.T) {
	t.Parallel()
	db := seats(t)
	lock := gormlock.WithRowLock(gormlock.ForUpdate)
	of := func(tables ...string) func(*gorm.DB) *gorm.DB {
		return gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Of(tables...))
	}
	var n int64
	var names []string
	for _, c := range []struct {
		name, want string
		query      func(tx *gorm.DB) error
	}{
		{"Count", "aggregate", func(tx *gorm.DB) error { return tx.Model(&seat{}).Scopes(lock).Count(&n).Error }},
		{"Count of a column", "aggregate", func(tx *gorm.DB) error { return tx.Model(&seat{}).Scopes(lock).Select("name").Count(&n).Error }},
		{"Distinct", "DISTINCT", func(tx *gorm.DB) error { return tx.Scopes(lock).Distinct("name").Find(&[]seat{}).Error }},
		{"Distinct and Pluck", "DISTINCT", func(tx *gorm.DB) error {
			return tx.Model(&seat{}).Scopes(lock).Distinct().Pluck("name", &names).Error
		}},
		{"select distinct", "DISTINCT", func(tx *gorm.DB) error {
			return tx.Model(&seat{}).Scopes(lock).Select("distinct name").Find(&names).Error
		}},
		{"Group", "GROUP BY", func(tx *gorm.DB) error {
			return tx.Model(&seat{}).Scopes(lock).Select("name").Group("name").Find(&names).Error
		}},
		{"an aggregate", "aggregate", func(tx *gorm.DB) error {
			return tx.Model(&seat{}).Scopes(lock).Select("max(id)").Find(&n).Error
		}},
		{"an aggregate with arguments", "aggregate", func(tx *gorm.DB) error {
			return tx.Model(&seat{}).Scopes(lock).Select("string_agg(name, ?)", ",").Find(&names).Error
		}},
		{"an aggregate in Rows", "aggregate", func(tx *gorm.DB) error {
			return tx.Model(&seat{}).Scopes(lock).Select("sum(id)").Scan(&n).Error
		}},
		{"a window function", "window", func(tx *gorm.DB) error {
			return tx.Model(&seat{}).Scopes(lock).Select("row_number() over (order by id)").Find(&[]int64{}).Error
		}},
		{"an unknown table", `no table of that name, it has seats`, func(tx *gorm.DB) error { return tx.Scopes(of("halls")).Find(&[]seat{}).Error }},
		{"an unknown table beside joins", `no table of that name, it has seats, Hall`, func(tx *gorm.DB) error {
			return tx.Joins("Hall").Scopes(of("halls")).Find(&[]seat{}).Error
		}},
		{"an unknown table beside a raw join", `no table of that name`, func(tx *gorm.DB) error {
			return tx.Joins("join halls h on h.id = seats.hall_id").Scopes(of("tickets")).Find(&[]seat{}).Error
		}},
		{"the outer side of Joins", "InnerJoins", func(tx *gorm.DB) error { return tx.Joins("Hall").Scopes(of("Hall")).Find(&[]seat{}).Error }},
		{"the outer side of a raw join", "InnerJoins", func(tx *gorm.DB) error {
			return tx.Joins("left join halls h on h.id = seats.hall_id").Scopes(of("h")).Find(&[]seat{}).Error
		}},
		{"the own table of a right join", "LEFT JOIN", func(tx *gorm.DB) error {
			return tx.Joins("right join halls h on h.id = seats.hall_id").Scopes(lock).Find(&[]seat{}).Error
		}},
		{"raw SQL", "raw SQL", func(tx *gorm.DB) error { return tx.Raw("select * from seats").Scopes(lock).Find(&[]seat{}).Error }},
		{"scanned raw SQL", "raw SQL", func(tx *gorm.DB) error { return tx.Scopes(lock).Raw("select * from seats").Scan(&[]seat{}).Error }},
		{"Exec", "is for queries", func(tx *gorm.DB) error { return tx.Scopes(lock).Exec("delete from seats").Error }},
		{"Update", "is for queries", func(tx *gorm.DB) error {
			return tx.Model(&seat{}).Where("id = 1").Scopes(lock).Update("name", "x").Error
		}},
		{"UpdateColumn", "is for queries", func(tx *gorm.DB) error {
			return tx.Model(&seat{ID: 1}).Scopes(lock).UpdateColumn("name", "x").Error
		}},
		{"Save", "is for queries", func(tx *gorm.DB) error { return tx.Scopes(lock).Save(&seat{ID: 1, Name: "x"}).Error }},
		{"Delete", "is for queries", func(tx *gorm.DB) error { return tx.Scopes(lock).Delete(&seat{}, 1).Error }},
		{"Delete with a clause", "is for queries", func(tx *gorm.DB) error { return tx.Clauses(gormlock.SkipLocked()).Delete(&seat{}, 1).Error }},
		{"Create", "is for queries", func(tx *gorm.DB) error { return tx.Scopes(lock).Create(&seat{Name: "new"}).Error }},
		{"Create of several", "is for queries", func(tx *gorm.DB) error { return tx.Scopes(lock).Create(&[]seat{{Name: "new"}}).Error }},
		{"Create outside of a transaction", "is for queries", func(*gorm.DB) error {
			return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Clauses(gormlock.SkipLocked()).Create(&seat{Name: "new"}).Error
		}},
		{"CreateInBatches", "is for queries", func(tx *gorm.DB) error {
			return tx.Scopes(lock).CreateInBatches(&[]seat{{Name: "new"}, {Name: "newer"}}, 1).Error
		}},
		{"CreateInBatches outside of a transaction", "is for queries", func(*gorm.DB) error {
			return db.Scopes(lock).CreateInBatches(&[]seat{{Name: "new"}, {Name: "newer"}}, 1).Error
		}},
		{"Save of a new one", "is for queries", func(tx *gorm.DB) error { return tx.Scopes(lock).Save(&seat{Name: "new"}).Error }},
		{"FirstOrCreate with a conflict that is ignored", "is for queries", func(tx *gorm.DB) error {
			return tx.Scopes(lock).Clauses(clause.OnConflict{DoNothing: true}).Where(&seat{Name: "new"}).FirstOrCreate(&seat{}).Error
		}},
		{"an upsert", "is for queries", func(tx *gorm.DB) error {
			return tx.Scopes(lock).Clauses(clause.OnConflict{DoNothing: true}).Create(&seat{ID: 1}).Error
		}},
		{"a group of conditions", "group of conditions", func(tx *gorm.DB) error {
			return tx.Where(db.Where("id > 0").Scopes(lock).Or("id < 0")).Find(&[]seat{}).Error
		}},
		{"a group of conditions, clause", "group of conditions", func(tx *gorm.DB) error {
			return tx.Where(db.Clauses(gormlock.SkipLocked()).Where("id > 0")).Find(&[]seat{}).Error
		}},
		{"a joined association", "group of conditions", func(tx *gorm.DB) error {
			return tx.Joins("Hall", db.Where("true").Clauses(gormlock.SkipLocked())).Find(&[]seat{}).Error
		}},
		{"a joined association, scope", "group of conditions", func(tx *gorm.DB) error {
			return tx.InnerJoins("Hall", db.Scopes(lock).Where("true")).Find(&[]seat{}).Error
		}},
		{"two locks", "already has FOR UPDATE", func(tx *gorm.DB) error {
			return tx.Scopes(lock, gormlock.WithSkipLocked(gormlock.ForShare)).Find(&[]seat{}).Error
		}},
		{"a lock beside GORM's own", "already has FOR SHARE", func(tx *gorm.DB) error {
			return tx.Clauses(clause.Locking{Strength: "SHARE"}).Scopes(lock).Find(&[]seat{}).Error
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stand.InTx(t, db, func(tx *gorm.DB) {
				err := c.query(tx)
				if err == nil || stand.FromServer(err) || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v, want an error of ours with %q", err, c.want)
				}
				var rows []seat
				stand.MustDo(t, tx.Where("name = ''").Find(&rows))
				if len(rows) != 4 {
					t.Fatalf("%d of 4 rows are as they were", len(rows))
				}
			})
		})
	}
}

// TestRowLockFits: what PostgreSQL can lock is not refused, and locks what it should.
func TestRowLockFits(t *testing.T) {
	t.Parallel()
	db := seats(t)
	other := stand.NewRowRival(t)
	lock := func(opts ...gormlock.RowLockOption) func(*gorm.DB) *gorm.DB {
		return gormlock.WithRowLock(gormlock.ForNoKeyUpdate, opts...)
	}
	for _, c := range []struct {
		name                 string
		seats, halls, ticket int
		query                func(tx *gorm.DB) *gorm.DB
	}{
		{"an aggregate in a sub-query", 4, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(lock()).Select("id, (select count(*) from tickets where (seat_id) = seats.id and 'a(' <> '') n").Find(&[]seat{})
		}},
		{"an aggregate in a sub-query of GORM's", 4, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(lock()).Select("id, (?) n", tx.Model(&ticket{}).Select("count(*)")).Find(&[]seat{})
		}},
		{"columns that are named like other things", 4, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(lock()).Select("(id + 1) overall, (id) counted, name as distinctive").Model(&seat{}).Find(&[]map[string]any{})
		}},
		{"a column that is named like an aggregate", 4, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(lock()).Select("id as count, name").Find(&[]seat{})
		}},
		{"Joins locks the own table", 4, 0, 0, func(tx *gorm.DB) *gorm.DB { return tx.Joins("Hall").Scopes(lock()).Find(&[]seat{}) }},
		{"a raw left join locks the own table", 4, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Joins("left join halls h on h.id = seats.hall_id").Scopes(lock()).Find(&[]seat{})
		}},
		{"Of an inner join", 0, 1, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.InnerJoins("Hall").Scopes(lock(gormlock.Of("Hall"))).Find(&[]seat{})
		}},
		{"Of both", 4, 1, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.InnerJoins("Hall").Scopes(lock(gormlock.Of("Hall", "seats"))).Find(&[]seat{})
		}},
		{"Of twice", 4, 1, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.InnerJoins("Hall").Scopes(lock(gormlock.Of("Hall"), gormlock.Of("seats"))).Find(&[]seat{})
		}},
		{"Of a raw alias", 0, 1, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Joins(`join halls as "the hall" on "the hall".id = seats.hall_id`).Scopes(lock(gormlock.Of("the hall"))).Find(&[]seat{})
		}},
		{"an alias of the own table", 4, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Table("seats AS s").Joins("join halls on halls.id = s.hall_id").Scopes(lock()).Find(&[]seat{})
		}},
		{"a right join, of the other table", 0, 1, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Joins("right join halls h on h.id = seats.hall_id").Scopes(lock(gormlock.Of("h"))).Find(&[]seat{})
		}},
		{"a sub-query that locks", 2, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Where("id in (?)", tx.Model(&seat{}).Scopes(lock(gormlock.Skip())).Where("id < 3").Select("id")).Find(&[]seat{})
		}},
		{"Preload reads without a lock", 4, 0, 0, func(tx *gorm.DB) *gorm.DB { // G20
			return tx.Preload("Tickets.Stubs").Preload("Hall").Scopes(lock()).Find(&[]seat{})
		}},
		{"Preloaded", 4, 1, 4, func(tx *gorm.DB) *gorm.DB {
			return tx.Preload("Tickets").Preload("Hall").Scopes(lock(gormlock.Preloaded())).Find(&[]seat{})
		}},
		{"Preloaded and nested, with conditions", 4, 0, 2, func(tx *gorm.DB) *gorm.DB {
			return tx.Preload("Tickets.Stubs").Preload("Tickets", "id < 3").Scopes(lock(gormlock.Preloaded())).Find(&[]seat{})
		}},
		{"Preloaded and Joins", 4, 1, 4, func(tx *gorm.DB) *gorm.DB {
			return tx.Joins("Hall").Preload("Hall").Preload("Tickets").Scopes(lock(gormlock.Preloaded())).Find(&[]seat{})
		}},
		{"Preloaded associations", 4, 1, 4, func(tx *gorm.DB) *gorm.DB {
			return tx.Preload(clause.Associations).Scopes(lock(gormlock.Preloaded(), gormlock.Timeout(time.Second))).Find(&[]seat{})
		}},
		{"FirstOrCreate that finds", 1, 0, 0, func(tx *gorm.DB) *gorm.DB { return tx.Scopes(lock()).FirstOrCreate(&seat{}, "id = 2") }},
		{"FirstOrCreate that creates", 0, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(lock()).FirstOrCreate(&seat{ID: 9, HallID: 1}, "id = 9")
		}},
		{"FirstOrCreate that updates", 1, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(lock()).Where("id = 2").Assign(map[string]any{"hall_id": 1}).FirstOrCreate(&seat{})
		}},
		{"FirstOrCreate that updates, by a clause", 1, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Clauses(gormlock.RowLock(gormlock.ForUpdate)).Where("id = 2").Assign(seat{HallID: 1}).FirstOrCreate(&seat{})
		}},
		{"a lock before an Or", 2, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Clauses(gormlock.RowLock(gormlock.ForNoKeyUpdate)).Where("id = 1").Or("id = 4").Find(&[]seat{})
		}},
		{"the same lock twice", 4, 0, 0, func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(lock()).Clauses(gormlock.RowLock(gormlock.ForNoKeyUpdate)).Find(&[]seat{})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stand.InTx(t, db, func(tx *gorm.DB) {
				stand.MustDo(t, c.query(tx))
				got := [3]int{len(other.Locked("seats")), len(other.Locked("halls")), len(other.Locked("tickets"))}
				if want := [3]int{c.seats, c.halls, c.ticket}; got != want {
					t.Fatalf("locked are %v seats, halls and tickets, want %v", got, want)
				}
			})
		})
	}
	t.Run("Preloaded locks stubs too", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Preload("Tickets.Stubs").Scopes(lock(gormlock.Preloaded())).Find(&[]seat{}))
			if locked := other.Locked("stubs"); len(locked) != 4 {
				t.Fatalf("locked are %v", locked)
			}
		})
	})
	t.Run("Preloaded waits where the query skips, and can fail", func(t *testing.T) {
		release := other.Hold("select from tickets where id = 1 for update")
		defer release()
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Exec("set local lock_timeout = '20ms'"))
			err := tx.Preload("Tickets").Scopes(gormlock.WithSkipLocked(gormlock.Preloaded())).Find(&[]seat{}).Error
			if !errors.Is(err, gormlock.ErrLockTimeout) {
				t.Fatal(err)
			}
		})
		stand.InTx(t, db, func(tx *gorm.DB) {
			err := tx.Preload("Tickets").Scopes(lock(gormlock.Preloaded(), gormlock.Try())).Find(&[]seat{}).Error
			if !errors.Is(err, gormlock.ErrNotAcquired) || !strings.Contains(err.Error(), "tickets") {
				t.Fatal(err)
			}
			stand.MustDo(t, tx.Find(&[]seat{}))
		})
	})
}

// TestRowLockOptions: options that mean nothing together are an error on use, and values can be used again.
func TestRowLockOptions(t *testing.T) {
	t.Parallel()
	db := seats(t)
	for name, lock := range map[string]gormlock.RowLockClause{
		"no strength":           gormlock.RowLock(0),
		"unknown strength":      gormlock.RowLock(9),
		"two strengths":         gormlock.RowLock(gormlock.ForUpdate, gormlock.ForShare),
		"nil":                   gormlock.RowLock(gormlock.ForUpdate, nil),
		"Try and Skip":          gormlock.SkipLocked(gormlock.Try()),
		"Try and Timeout":       gormlock.RowLock(gormlock.ForUpdate, gormlock.Try(), gormlock.Timeout(time.Second)),
		"Skip and Timeout":      gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second), gormlock.Skip()),
		"no time":               gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(0)),
		"negative time":         gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(-time.Second)),
		"too much time":         gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(1000*time.Hour)),
		"Of without a table":    gormlock.RowLock(gormlock.ForUpdate, gormlock.Of()),
		"a name full of tricks": gormlock.RowLock(gormlock.ForUpdate, gormlock.Of(`seats" nowait --`)),
	} {
		t.Run(name, func(t *testing.T) {
			stand.InTx(t, db, func(tx *gorm.DB) {
				err := tx.Clauses(lock).Find(&[]seat{}).Error
				if err == nil || stand.FromServer(err) {
					t.Fatal(err)
				}
				if !strings.Contains(name, "tricks") && !errors.Is(err, advisory.ErrOption) {
					t.Fatal(err)
				}
			})
		})
	}
	t.Run("one value serves many queries", func(t *testing.T) {
		skip, of := gormlock.Skip(), gormlock.Of("seats")
		lock := gormlock.RowLock(gormlock.ForUpdate, skip, of)
		stand.InTx(t, db, func(tx *gorm.DB) {
			for range 3 {
				stand.MustDo(t, tx.Clauses(lock).Find(&[]seat{}))
				stand.MustDo(t, tx.Scopes(gormlock.WithRowLock(gormlock.ForShare, of, skip)).Find(&[]seat{}))
			}
		})
	})
	t.Run("V18: the words for advisory locks alone are none for row locks", func(t *testing.T) {
		rowLockOption := reflect.TypeFor[gormlock.RowLockOption]()
		for _, o := range []any{advisory.Shared(), advisory.AllowSnapshot(), advisory.Try()} {
			if reflect.TypeOf(o).Implements(rowLockOption) {
				t.Errorf("%T is a row lock option", o)
			}
		}
		for _, o := range []any{gormlock.Skip(), gormlock.Of("seats"), gormlock.ForUpdate} {
			if reflect.TypeOf(o).Implements(reflect.TypeFor[advisory.Option]()) {
				t.Errorf("%T is an option of advisory locks", o)
			}
		}
	})
}

// TestRowLockDryRun: G17, nothing is sent, and the text is what would be.
func TestRowLockDryRun(t *testing.T) {
	t.Parallel()
	db := seats(t)
	text := db.ToSQL(func(tx *gorm.DB) *gorm.DB {
		return tx.InnerJoins("Hall").Preload("Tickets").Where("seats.id = ?", 1).
			Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate, gormlock.Of(`Hall`, "seats"), gormlock.Try(), gormlock.Preloaded())).Find(&[]seat{})
	})
	if want := `FOR NO KEY UPDATE OF "Hall","seats" NOWAIT`; !strings.HasSuffix(text, want) {
		t.Fatalf("%s\nwant it to end in %s", text, want)
	}
	dry, recorder := stand.Recorded(db)
	dry = dry.Session(&gorm.Session{DryRun: true})
	stand.MustDo(t, dry.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second))).Find(&[]seat{}))
	if seen := recorder.Seen(); len(seen) > 0 {
		t.Fatalf("sent %q", seen)
	}
	err := dry.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Model(&seat{}).Count(new(int64)).Error
	if err == nil {
		t.Fatal("a query that cannot be locked is no error in DryRun")
	}
}

// TestRowLockTimeoutInSubquery: GORM builds a sub-query apart from its statement and drops its errors.
func TestRowLockTimeoutInSubquery(t *testing.T) {
	t.Parallel()
	db := seats(t)
	lock := gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second))
	for name, query := range map[string]func(tx *gorm.DB) error{
		"Where": func(tx *gorm.DB) error {
			return tx.Where("id in (?)", tx.Model(&seat{}).Clauses(lock).Select("id")).Find(&[]seat{}).Error
		},
		"Table": func(tx *gorm.DB) error {
			return tx.Table("(?) as s", tx.Model(&seat{}).Clauses(lock)).Find(&[]seat{}).Error
		},
		"gorm.G": func(tx *gorm.DB) error {
			_, err := gorm.G[seat](tx).Where("id in (?)", gorm.G[seat](tx, lock).Select("id")).Find(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			stand.InTx(t, db, func(tx *gorm.DB) {
				if err := query(tx); err == nil || !strings.Contains(err.Error(), "do not reach a row lock in a sub-query") {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestRowLockWithoutPlugin(t *testing.T) {
	t.Parallel()
	seats(t)
	db := pgtest.Open(t, pgtest.Schema())
	for _, door := range rowLockDoors {
		t.Run(door.name, func(t *testing.T) {
			stand.InTx(t, db, func(tx *gorm.DB) {
				tx, recorder := stand.Recorded(tx)
				rows, err := door.find(t.Context(), tx, gormlock.ForUpdate)
				if !errors.Is(err, gormlock.ErrNotInstalled) || len(rows) > 0 || len(recorder.Seen()) > 0 {
					t.Fatalf("found %v, %v after %q", rows, err, recorder.Seen())
				}
			})
		})
	}
}

func TestRowLockOnAnotherDatabase(t *testing.T) {
	t.Parallel()
	db := stand.OnSQLite(t, []any{&stub{}})
	stand.InTx(t, db, func(tx *gorm.DB) {
		err := tx.Scopes(gormlock.WithSkipLocked()).Find(&[]stub{}).Error
		if !errors.Is(err, gormlock.ErrNotPostgres) {
			t.Fatal(err)
		}
	})
}

// TestG26_RowLockGoesToThePrimary: the replica here has no tables, so that whatever goes there fails.
func TestG26_RowLockGoesToThePrimary(t *testing.T) {
	t.Parallel()
	replica := pgtest.Database(t)
	db := seats(t)
	stand.UseReplica(t, db, replica)
	if err := db.Find(&[]seat{}).Error; !stand.FromServer(err) {
		t.Fatalf("reads do not go to the replica: %v", err)
	}
	for _, door := range rowLockDoors {
		t.Run(door.name, func(t *testing.T) {
			err := db.Transaction(func(tx *gorm.DB) error {
				rows, err := door.find(t.Context(), tx, gormlock.ForUpdate, gormlock.Timeout(time.Second))
				if err == nil && !slices.Equal(ids(rows), []int64{1, 2}) {
					t.Errorf("found %v", ids(rows))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := door.find(t.Context(), db, gormlock.ForUpdate); !errors.Is(err, gormlock.ErrNoTransaction) {
				t.Fatal(err)
			}
		})
	}
}

// TestRowLockOfAnAlias: the query's own table is locked under the name that the server knows it by.
func TestRowLockOfAnAlias(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 2)
	var place string
	stand.MustDo(t, db.Raw("select current_schema").Scan(&place))
	for table, alias := range map[string]string{
		"jobs AS J": "J", "jobs J": "J", place + ".jobs x": "x", `"` + place + `"."jobs" AS X`: "X", `"jobs" x`: "x", `jobs AS "X"`: `"X"`,
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Table(table).Select(alias+".*").Joins("join queues q on q.id = "+alias+".queue_id").Unscoped().
				Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]stand.Job{}))
			stand.Equal(t, table, len(stand.NewRowRival(t).Locked("jobs")), 3) // with the deleted one
			stand.Equal(t, "queues", len(stand.NewRowRival(t).Locked("queues")), 0)
		})
	}
}

// TestRowLockAndATypo: only a name that stands after FOR UPDATE OF is spoken of as one.
func TestRowLockAndATypo(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 1)
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.MustDo(t, tx.SavePoint("before"))
		_, err := gormlock.Claim[stand.Job](tx, 1, stand.Running, func(q *gorm.DB) *gorm.DB { return q.Where("quues.paused") })
		if err == nil || strings.Contains(err.Error(), "Of(") {
			t.Error(err)
		}
		stand.MustDo(t, tx.RollbackTo("before"))
		err = tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Of("jobs"))).Where("quues.paused").Find(&[]stand.Job{}).Error
		if err == nil || strings.Contains(err.Error(), "Of(") {
			t.Error(err)
		}
	})
}
