package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// writes are ways to move a row's version past the structs.
var writes = map[string]func(t *testing.T, tx *gorm.DB){
	"raw SQL": func(t *testing.T, tx *gorm.DB) {
		t.Helper()
		stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
	},
	"a table without its model": func(t *testing.T, tx *gorm.DB) {
		t.Helper()
		stand.MustDo(t, tx.Table("accounts").Where("true").Updates(map[string]any{"version": gorm.Expr("version + 1")}))
	},
	"a trigger": func(t *testing.T, tx *gorm.DB) {
		t.Helper()
		stand.MustDo(t, tx.Create(&stand.PlainAccount{}))
	},
	"a function": func(t *testing.T, tx *gorm.DB) {
		t.Helper()
		var n int
		stand.MustDo(t, tx.Raw("SELECT bump_accounts()").Scan(&n))
	},
	"a function that a query of GORM calls": func(t *testing.T, tx *gorm.DB) {
		t.Helper()
		var n []int
		stand.MustDo(t, tx.Table("bump_accounts() AS n").Select("n").Find(&n))
	},
	"raw SQL through Raw": func(t *testing.T, tx *gorm.DB) {
		t.Helper()
		var n []int
		stand.MustDo(t, tx.Raw("WITH w AS (UPDATE accounts SET version = version + 1 RETURNING 1) SELECT 1 FROM w").Scan(&n))
	},
	"a statement of several": func(t *testing.T, tx *gorm.DB) {
		t.Helper()
		stand.MustDo(t, tx.Exec("SELECT 1; UPDATE accounts SET version = version + 1"))
	},
}

// reads are ways to read the row then.
var reads = map[string]func(t *testing.T, tx *gorm.DB, id int64) *stand.Account{
	"First": func(t *testing.T, tx *gorm.DB, id int64) *stand.Account {
		t.Helper()
		var a stand.Account
		stand.MustDo(t, tx.First(&a, id))
		return &a
	},
	"Scan": func(t *testing.T, tx *gorm.DB, id int64) *stand.Account {
		t.Helper()
		var a stand.Account
		stand.MustDo(t, tx.Model(&a).Where("id = ?", id).Scan(&a))
		return &a
	},
	"Raw and Scan": func(t *testing.T, tx *gorm.DB, id int64) *stand.Account {
		t.Helper()
		var all []stand.Account
		stand.MustDo(t, tx.Raw("SELECT * FROM accounts WHERE id = ?", id).Scan(&all))
		return &all[0]
	},
	"what an update returns to Scan": func(t *testing.T, tx *gorm.DB, id int64) *stand.Account {
		t.Helper()
		var a stand.Account
		stand.MustDo(t, tx.Raw("UPDATE accounts SET balance = 9 WHERE id = ? RETURNING *", id).Scan(&a))
		return &a
	},
	"LockRow": func(t *testing.T, tx *gorm.DB, id int64) *stand.Account {
		t.Helper()
		a := stand.Account{ID: id}
		stand.Must(t, gormlock.LockRow(tx, &a))
		return &a
	},
	"gorm.G, Find": func(t *testing.T, tx *gorm.DB, id int64) *stand.Account {
		t.Helper()
		all, err := gorm.G[stand.Account](tx).Where("id = ?", id).Find(t.Context())
		stand.Must(t, err)
		return &all[0]
	},
	"gorm.G, First": func(t *testing.T, tx *gorm.DB, id int64) *stand.Account {
		t.Helper()
		a, err := gorm.G[stand.Account](tx).Where("id = ?", id).First(t.Context())
		stand.Must(t, err)
		return &a
	},
	"gorm.G, Last, under a savepoint": func(t *testing.T, tx *gorm.DB, id int64) *stand.Account {
		t.Helper()
		var a stand.Account
		stand.Must(t, tx.Transaction(func(tx *gorm.DB) (err error) {
			stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1")) // by a subtransaction
			a, err = gorm.G[stand.Account](tx).Where("id = ?", id).Last(t.Context())
			return err
		}))
		return &a
	},
}

// V1: what was read in a transaction after something was written in it, by whatever means, counts as not read once that is
// rolled back: the next writer makes the very same version.
func TestV1_ReadsAfterAnyWrite(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}, &stand.PlainAccount{}})
	stand.MustDo(t, db.Exec(`CREATE FUNCTION bump_accounts() RETURNS int LANGUAGE sql AS 'UPDATE accounts SET version = version + 1 RETURNING 1';
		CREATE FUNCTION bump() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM bump_accounts(); RETURN NEW; END';
		CREATE TRIGGER bump BEFORE INSERT ON plain_accounts FOR EACH ROW EXECUTE FUNCTION bump()`))
	for writing, write := range writes {
		for reading, read := range reads {
			t.Run(writing+"/"+reading, func(t *testing.T) {
				var a stand.Account
				stand.MustDo(t, db.Create(&a))
				var got *stand.Account
				if err := db.Transaction(func(tx *gorm.DB) error {
					write(t, tx)
					got = read(t, tx, a.ID)
					return errUndo
				}); !errors.Is(err, errUndo) {
					t.Fatal(err)
				}
				for range 4 {
					stand.MustDo(t, db.Model(&a).Update("balance", 55)) // the rival
					mine := *got
					if err := db.Save(&mine).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
						t.Fatalf("%+v was saved over %+v: %v", *got, a, err)
					}
				}
			})
		}
	}
}

// What was read before anything was written is what its row is again.
func TestV1_ReadsBeforeAWrite(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.MustDo(t, db.Create(&stand.Account{ID: 1}))
	for reading, read := range reads {
		if reading == "what an update returns to Scan" || reading == "gorm.G, Last, under a savepoint" {
			continue
		}
		var got *stand.Account
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Exec("SAVEPOINT a"))
			stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
			stand.MustDo(t, tx.Exec("ROLLBACK TO a"))
			got = read(t, tx, 1)
			stand.MustDo(t, tx.Model(got).Update("balance", 7))
			return errUndo
		})
		if err := db.Save(got).Error; err != nil {
			t.Error(reading, err)
		}
	}
}

// What is read after a write and not rolled back can be written, in the transaction and after it: by gorm.G too, whose
// copies are unread only where the transaction itself had written the row.
func TestV1_ReadsAfterAWriteThatStays(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}, &stand.PlainAccount{}})
	stand.MustDo(t, db.Create(&[]stand.Account{{ID: 1}, {ID: 2}}))
	for reading, read := range reads {
		var got *stand.Account
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1 WHERE id = 1"))
			if reading == "gorm.G, Last, under a savepoint" {
				return nil
			}
			got = read(t, tx, 2)
			got.Balance++
			return tx.Save(got).Error
		}))
		if got != nil {
			got.Balance++
			stand.MustDo(t, db.Save(got))
		}
	}
}

// V1: the copies of gorm.G are unread in every kind of version, and through a join, where the transaction wrote their rows.
func TestV1_CopiesOfEveryKind(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.TimedTask{}, &stand.RailsTask{}, &stand.LinedOrder{}, &shipment{}})
	stand.MustDo(t, db.Exec("CREATE VIEW seen AS SELECT * FROM lined_orders"))
	timed, rails, order := stand.TimedTask{}, stand.RailsTask{}, stand.LinedOrder{}
	stand.MustDo(t, db.Create(&timed))
	stand.MustDo(t, db.Create(&rails))
	stand.MustDo(t, db.Create(&order))
	stand.MustDo(t, db.Create(&shipment{ID: 1, OrderID: order.ID}))
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Exec("UPDATE timed_tasks SET state = 'x'; UPDATE rails_tasks SET state = 'x', lock_version = 1; UPDATE lined_orders SET version = 2"))
		gotTimed, err := gorm.G[stand.TimedTask](tx).Take(t.Context())
		stand.Must(t, err)
		gotRails, err := gorm.G[stand.RailsTask](tx).Order("lock_version").Last(t.Context())
		stand.Must(t, err)
		stand.Equal(t, "time", gotTimed.Version.Year(), 1)
		stand.Equal(t, "rails", int64(gotRails.LockVersion), stand.Unread)
		sent, err := gorm.G[shipment](tx).Joins(clause.JoinTarget{Association: "Order"}, nil).First(t.Context())
		stand.Must(t, err)
		stand.Equal(t, "joined", [2]int64{sent.Version, sent.Order.Version}, [2]int64{1, stand.Unread})
		view, err := gorm.G[viewedOrder](tx).First(t.Context()) // rows of a view do not say who wrote them
		stand.Must(t, err)
		stand.Equal(t, "a view", view.Version, stand.Unread)
		distinct, err := gorm.G[stand.LinedOrder](tx).Distinct("*").First(t.Context())
		stand.Must(t, err)
		stand.Equal(t, "distinct", distinct.Version, stand.Unread)
		return errUndo
	})
}

type shipment struct {
	ID      int64
	OrderID int64
	Order   stand.LinedOrder
	Version int64 `gormlock:"version"`
}

type viewedOrder struct {
	ID      int64
	Title   string
	Version int64 `gormlock:"version"`
}

func (viewedOrder) TableName() string { return "seen" }

// V1: GORM copies what Association saves back to the caller when the statement is over: what a rollback must reach is a copy.
func TestG29_AssociationsThatCopyBack(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}})
	for name, associate := range map[string]func(*gorm.Association, *stand.LinedLine) error{
		"Append":        func(a *gorm.Association, line *stand.LinedLine) error { return a.Append(line) },
		"Replace":       func(a *gorm.Association, line *stand.LinedLine) error { return a.Replace(line) },
		"Append, slice": func(a *gorm.Association, line *stand.LinedLine) error { return a.Append([]*stand.LinedLine{line}) },
	} {
		for _, full := range []bool{false, true} {
			order, line := stand.LinedOrder{}, stand.LinedLine{Qty: 1}
			stand.MustDo(t, db.Create(&order))
			line.OrderID = order.ID
			stand.MustDo(t, db.Create(&line))
			_ = db.Transaction(func(tx *gorm.DB) error {
				line.Qty = 2
				stand.Must(t, associate(tx.Session(&gorm.Session{FullSaveAssociations: full}).Model(&order).Association("Lines"), &line))
				return errUndo
			})
			rival := stand.Row[stand.LinedLine](t, db, line.ID)
			stand.MustDo(t, db.Model(&rival).Update("qty", 55))
			if err := db.Save(&line).Error; !errors.Is(err, gormlock.ErrVersionMissing) && !errors.Is(err, gormlock.ErrStale) {
				t.Errorf("%s, full %v: %+v was saved over %+v: %v", name, full, line, rival, err)
			}

			// In its own transaction nothing is lost by the copying, and new children are new again.
			fresh := stand.LinedLine{Qty: 3}
			stand.Must(t, associate(db.Model(&order).Association("Lines"), &fresh))
			stand.MustDo(t, db.Model(&fresh).Update("qty", 4))
			again := stand.LinedLine{Qty: 3}
			_ = db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, associate(tx.Model(&order).Association("Lines"), &again))
				return errUndo
			})
			stand.MustDo(t, db.Exec("INSERT INTO lined_lines (id, order_id, qty, version) VALUES (?, ?, 55, 1)", again.ID, order.ID)) // a rival's
			if err := db.Save(&again).Error; again.ID != 0 && !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%s, full %v: %+v was saved: %v", name, full, again, err)
			}
		}
	}
}
