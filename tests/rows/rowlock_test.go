package rows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// rowLockDoors are the ways to ask for a row lock.
var rowLockDoors = []struct {
	name string
	find func(ctx context.Context, tx *gorm.DB, strength gormlock.Strength, opts ...gormlock.RowLockOption) ([]seat, error)
}{
	{"Scopes", func(ctx context.Context, tx *gorm.DB, strength gormlock.Strength, opts ...gormlock.RowLockOption) (rows []seat, err error) {
		err = tx.WithContext(ctx).Scopes(gormlock.WithRowLock(strength, opts...)).Order("id").Limit(2).Find(&rows).Error
		return rows, err
	}},
	{"Clauses", func(ctx context.Context, tx *gorm.DB, strength gormlock.Strength, opts ...gormlock.RowLockOption) (rows []seat, err error) {
		err = tx.WithContext(ctx).Clauses(gormlock.RowLock(strength, opts...)).Order("id").Limit(2).Find(&rows).Error
		return rows, err
	}},
	{"gorm.G", func(ctx context.Context, tx *gorm.DB, strength gormlock.Strength, opts ...gormlock.RowLockOption) ([]seat, error) {
		return gorm.G[seat](tx, gormlock.RowLock(strength, opts...)).Order("id").Limit(2).Find(ctx)
	}},
	{"G.Scopes", func(ctx context.Context, tx *gorm.DB, strength gormlock.Strength, opts ...gormlock.RowLockOption) ([]seat, error) {
		return gorm.G[seat](tx).Scopes(gormlock.RowLock(strength, opts...).ModifyStatement).Order("id").Limit(2).Find(ctx)
	}},
}

// TestRowLock is what holds behind every door, in every mode, in every kind of transaction. V18: Try and Timeout are
// the words of advisory locks. G19: gorm.G drops what was set on the session before it.
func TestRowLock(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := seats(t, opts...)
		for _, door := range rowLockDoors {
			t.Run(door.name, func(t *testing.T) {
				find := func(tx *gorm.DB, opts ...gormlock.RowLockOption) ([]seat, error) {
					return door.find(t.Context(), tx, gormlock.ForNoKeyUpdate, opts...)
				}
				rowLockConformance(t, db, stand.NewRowRival(t), find)
			})
		}
	})
}

func rowLockConformance(t *testing.T, db *gorm.DB, other stand.RowRival, find func(tx *gorm.DB, opts ...gormlock.RowLockOption) ([]seat, error)) {
	// The rival's schema is that of its test: the one of the database is shared with the doors.
	if err := useSchemaOf(db, other); err != nil {
		t.Fatal(err)
	}
	assertLocked := func(t *testing.T, tx *gorm.DB) {
		t.Helper()
		rows, err := find(tx)
		if err != nil || !slices.Equal(ids(rows), []int64{1, 2}) {
			t.Fatalf("found %v, %v", ids(rows), err)
		}
		if locked := other.Locked("seats"); !slices.Equal(locked, []int64{1, 2}) {
			t.Fatalf("locked are %v, want the rows that were read", locked)
		}
	}
	t.Run("locks in db.Transaction until it ends", func(t *testing.T) {
		err := db.Transaction(func(tx *gorm.DB) error {
			assertLocked(t, tx)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if locked := other.Locked("seats"); len(locked) > 0 {
			t.Fatalf("still locked: %v", locked)
		}
	})
	t.Run("locks in Begin and in a nested transaction", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			err := tx.Transaction(func(tx *gorm.DB) error {
				assertLocked(t, tx)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if locked := other.Locked("seats"); len(locked) != 2 {
				t.Fatalf("locked after the nested transaction: %v", locked)
			}
		})
	})
	t.Run("locks in the implicit transaction of a create", func(t *testing.T) {
		ran := errors.New("the hook ran")
		err := db.Create(&seat{ID: 99, HallID: 1, hook: func(tx *gorm.DB) error {
			assertLocked(t, tx)
			return ran
		}}).Error
		if !errors.Is(err, ran) {
			t.Fatal(err)
		}
	})
	t.Run("without a transaction is ErrNoTransaction and nothing is executed", func(t *testing.T) {
		db, recorder := stand.Recorded(db)
		rows, err := find(db)
		if !errors.Is(err, gormlock.ErrNoTransaction) || len(rows) > 0 {
			t.Fatalf("found %v, %v", rows, err)
		}
		if seen := recorder.Seen(); len(seen) > 0 {
			t.Fatalf("executed: %q", seen)
		}
	})
	t.Run("Skip leaves out what is locked", func(t *testing.T) {
		release := other.Hold("select from seats where id in (1, 3) for update")
		defer release()
		stand.InTx(t, db, func(tx *gorm.DB) {
			rows, err := find(tx, gormlock.Skip())
			if err != nil || !slices.Equal(ids(rows), []int64{2, 4}) {
				t.Fatalf("found %v, %v", ids(rows), err)
			}
		})
	})
	t.Run("Try is ErrNotAcquired and leaves the transaction usable", func(t *testing.T) {
		release := other.Hold("select from seats where id = 2 for update")
		defer release()
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Create(&hall{ID: 7}))
			rows, err := find(tx, gormlock.Try())
			if !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Fatalf("found %v, %v", ids(rows), err)
			}
			assertUsable(t, tx)
			release()
			if locked := other.Locked("seats"); len(locked) > 0 { // row 1 was locked before 2 was refused
				t.Fatalf("still locked: %v", locked)
			}
			assertLocked(t, tx)
		})
	})
	t.Run("Timeout is ErrLockTimeout and leaves the transaction usable", func(t *testing.T) {
		release := other.Hold("select from seats where id = 2 for update")
		defer release()
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Create(&hall{ID: 7}))
			stand.MustDo(t, tx.Exec("set local lock_timeout = '54321ms'"))
			rows, err := find(tx, gormlock.Timeout(shortWait))
			if !errors.Is(err, gormlock.ErrLockTimeout) {
				t.Fatalf("found %v, %v", ids(rows), err)
			}
			assertUsable(t, tx)
			assertLockTimeout(t, tx, "54321ms")
			release()
			if rows, err = find(tx, gormlock.Timeout(longWait)); err != nil || len(rows) != 2 {
				t.Fatalf("found %v, %v", ids(rows), err)
			}
			assertLockTimeout(t, tx, "54321ms")
		})
	})
}

// assertUsable checks that the transaction still has its hall 7 and can go on.
func assertUsable(t *testing.T, tx *gorm.DB) {
	t.Helper()
	var n int64
	if err := tx.Model(&hall{}).Where("id = 7").Count(&n).Error; err != nil || n != 1 {
		t.Fatalf("the transaction has %d of its own rows, %v", n, err)
	}
}

func assertLockTimeout(t *testing.T, tx *gorm.DB, want string) {
	t.Helper()
	var got string
	if err := tx.Raw("show lock_timeout").Row().Scan(&got); err != nil || got != want {
		t.Fatalf("lock_timeout is %q, %v, want %q", got, err, want)
	}
}

func useSchemaOf(db *gorm.DB, r stand.RowRival) error {
	var path string
	if err := db.Raw("show search_path").Row().Scan(&path); err != nil {
		return err
	}
	_, err := r.Conn.Exec(context.Background(), "set search_path to "+path)
	return err
}

// TestStrength checks the table of the doc comment: which strengths two transactions hold together.
func TestStrength(t *testing.T) {
	t.Parallel()
	db := seats(t)
	other := stand.NewRowRival(t)
	together := map[gormlock.Strength][]gormlock.Strength{
		gormlock.ForKeyShare:    {gormlock.ForKeyShare, gormlock.ForShare, gormlock.ForNoKeyUpdate},
		gormlock.ForShare:       {gormlock.ForKeyShare, gormlock.ForShare},
		gormlock.ForNoKeyUpdate: {gormlock.ForKeyShare},
		gormlock.ForUpdate:      {},
	}
	for ours, allowed := range together {
		for theirs := gormlock.ForUpdate; theirs <= gormlock.ForKeyShare; theirs++ {
			t.Run(fmt.Sprintf("%v and %v", ours, theirs), func(t *testing.T) {
				stand.InTx(t, db, func(tx *gorm.DB) {
					stand.MustDo(t, tx.Scopes(gormlock.WithRowLock(ours)).Find(&[]seat{}, 1))
					locked := other.LockedAgainst("seats", theirs.String())
					if free := len(locked) == 0; free != slices.Contains(allowed, theirs) {
						t.Fatalf("locked against %v are %v", theirs, locked)
					}
				})
			})
		}
	}
}

// TestP19 is why there are four strengths: FOR UPDATE of a parent holds up the inserts of its children.
func TestP19_ForNoKeyUpdateLetsChildrenIn(t *testing.T) {
	t.Parallel()
	db := seats(t)
	other := stand.NewRowRival(t)
	insert := func() error {
		_, err := other.Conn.Exec(t.Context(), "set lock_timeout = 50; insert into tickets (id, seat_id) values (100, 1)")
		return err
	}
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.MustDo(t, tx.Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate)).Find(&[]seat{}, 1))
		if err := insert(); err != nil {
			t.Fatalf("under FOR NO KEY UPDATE: %v", err)
		}
	})
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.MustDo(t, tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]seat{}, 1))
		if err := insert(); err == nil {
			t.Fatal("under FOR UPDATE a child was inserted")
		}
	})
}

func TestSkipLocked(t *testing.T) {
	t.Parallel()
	db := seats(t)
	other := stand.NewRowRival(t)
	other.Hold("select from seats where id = 1 for update")
	t.Run("is FOR UPDATE SKIP LOCKED", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			var rows []seat
			stand.MustDo(t, tx.Scopes(gormlock.WithSkipLocked()).Order("id").Limit(2).Find(&rows))
			if !slices.Equal(ids(rows), []int64{2, 3}) {
				t.Fatalf("found %v", ids(rows))
			}
			watcher := stand.NewRowRival(t)
			if err := useSchemaOf(db, watcher); err != nil {
				t.Fatal(err)
			}
			if locked := watcher.LockedAgainst("seats", "FOR KEY SHARE"); !slices.Equal(locked, []int64{1, 2, 3}) {
				t.Fatalf("locked are %v", locked)
			}
		})
	})
	t.Run("takes another strength", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			rows, err := gorm.G[seat](tx, gormlock.SkipLocked(gormlock.ForShare)).Find(t.Context())
			if err != nil || len(rows) != 3 {
				t.Fatal(rows, err)
			}
			watcher := stand.NewRowRival(t)
			if err := useSchemaOf(db, watcher); err != nil {
				t.Fatal(err)
			}
			if locked := watcher.LockedAgainst("seats", "FOR SHARE"); !slices.Equal(locked, []int64{1}) {
				t.Fatalf("locked are %v", locked)
			}
		})
	})
	t.Run("First of a locked row is not found", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			if err := tx.Scopes(gormlock.WithSkipLocked()).First(&seat{}, 1).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
				t.Fatal(err)
			}
		})
	})
	t.Run("FindInBatches locks every batch and keeps the locks", func(t *testing.T) { // G3, G4
		stand.InTx(t, db, func(tx *gorm.DB) {
			var rows, all []seat
			stand.MustDo(t, tx.Scopes(gormlock.WithSkipLocked()).FindInBatches(&rows, 2, func(*gorm.DB, int) error {
				all = append(all, rows...)
				return nil
			}))
			if !slices.Equal(ids(all), []int64{2, 3, 4}) {
				t.Fatalf("found %v", ids(all))
			}
			watcher := stand.NewRowRival(t)
			if err := useSchemaOf(db, watcher); err != nil {
				t.Fatal(err)
			}
			if locked := watcher.Locked("seats"); len(locked) != 4 {
				t.Fatalf("locked are %v", locked)
			}
		})
	})
}

// TestRowLockWhoseContextEnds while its rows are read: the transaction, which has a context of its own, goes on as it was.
func TestRowLockWhoseContextEnds(t *testing.T) {
	t.Parallel()
	db := seats(t)
	stand.Must(t, db.Callback().Query().After("gorm:query").Before("gormlock:after_read").Register("cancel", func(tx *gorm.DB) {
		if cancel, ok := tx.Get("cancel"); ok {
			cancel.(context.CancelFunc)()
		}
	}))
	for name, option := range map[string]gormlock.RowLockOption{"Timeout": gormlock.Timeout(time.Second), "Try": gormlock.Try()} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Exec("set local lock_timeout = '54321ms'"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_ = tx.WithContext(ctx).Set("cancel", cancel).Scopes(gormlock.WithRowLock(gormlock.ForUpdate, option)).Find(&[]seat{}).Error
			if ctx.Err() == nil {
				t.Fatal("the context has not ended")
			}
			assertLockTimeout(t, tx, "54321ms")
			if err := tx.Exec("release savepoint gormlock").Error; err == nil {
				t.Errorf("%s: its savepoint is still open", name)
			}
		})
	}
}
