package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// parcel is a model without a version and without associations. What else is read of its table holds more.
type parcel struct {
	ID, OrderID int64
}

// orderOf is a form of an order, with the order's lines.
type orderOf struct {
	ID    int64
	Title string
	Lines []stand.LinedLine `gorm:"foreignKey:OrderID"`
}

func (orderOf) TableName() string { return "lined_orders" }

type parcelOf struct {
	ID, OrderID int64
	Order       *stand.LinedOrder
}

func (parcelOf) TableName() string { return "parcels" }

type parcelWith struct {
	ID, OrderID int64
	Order       stand.LinedOrder
}

func (parcelWith) TableName() string { return "parcels" }

// parcelBehind reaches the lines through a struct that has no version itself.
type parcelBehind struct {
	ID, OrderID int64
	Order       *orderOf
}

func (parcelBehind) TableName() string { return "parcels" }

// parcelAround has its association in what it embeds.
type parcelAround struct {
	ID   int64
	Part struct {
		OrderID int64
		Order   *stand.LinedOrder `gorm:"foreignKey:OrderID"`
	} `gorm:"embedded"`
}

func (parcelAround) TableName() string { return "parcels" }

// labeled is a line with a column of another table.
type labeled struct {
	stand.LinedLine
	Title string
}

// scannedJoins is the read that is not seen where the end is not: docs/faults.md names Scan.
const scannedJoins = "Joins in Scan"

// filled are reads that leave rows of versioned models somewhere in their destination. Each returns where.
var filled = map[string]func(tx *gorm.DB) (row any, err error){
	"Preload": func(tx *gorm.DB) (any, error) {
		var found orderOf
		err := tx.Preload("Lines").Take(&found).Error
		return first(found.Lines), err
	},
	"Model of another type, Preload": func(tx *gorm.DB) (any, error) {
		var found []orderOf
		err := tx.Model(&stand.LinedOrder{}).Preload("Lines").Find(&found).Error
		return first(first(found).Lines), err
	},
	"Model of another type, Preload of one": func(tx *gorm.DB) (any, error) {
		var found orderOf
		err := tx.Model(&stand.LinedOrder{}).Preload("Lines").First(&found).Error
		return first(found.Lines), err
	},
	"Model without a version, Preload": func(tx *gorm.DB) (any, error) {
		var found []*parcelOf
		err := tx.Model(&parcel{}).Preload("Order").Find(&found).Error
		return (*first(found)).Order, err
	},
	"Model without a version, Preload of values": func(tx *gorm.DB) (any, error) {
		var found []parcelWith
		err := tx.Model(&parcel{}).Preload("Order").Find(&found).Error
		return &first(found).Order, err
	},
	"Model without a version, Preload into an array": func(tx *gorm.DB) (any, error) {
		var found [1]parcelWith
		err := tx.Model(&parcel{}).Preload("Order").Find(&found).Error
		return &found[0].Order, err
	},
	"Model without a version, Preload of Preload": func(tx *gorm.DB) (any, error) {
		var found []parcelWith
		err := tx.Model(&parcel{}).Preload("Order.Lines").Find(&found).Error
		return first(first(found).Order.Lines), err
	},
	"Model without a version, Preload behind a form": func(tx *gorm.DB) (any, error) {
		var found []parcelBehind
		err := tx.Model(&parcel{}).Preload("Order.Lines").Find(&found).Error
		return first(first(found).Order.Lines), err
	},
	"Model without a version, Preload of what is embedded": func(tx *gorm.DB) (any, error) {
		var found []parcelAround
		err := tx.Model(&parcel{}).Preload("Part.Order").Find(&found).Error
		return first(found).Part.Order, err
	},
	scannedJoins: func(tx *gorm.DB) (any, error) {
		var found []parcelOf
		err := tx.Model(&parcelOf{}).Joins("Order").Scan(&found).Error
		return first(found).Order, err
	},
	"Joins": func(tx *gorm.DB) (any, error) {
		var found []parcelOf
		err := tx.Joins("Order").Find(&found).Error
		return first(found).Order, err
	},
	"Joins of one": func(tx *gorm.DB) (any, error) {
		var found parcelOf
		err := tx.Joins("Order").Take(&found).Error
		return found.Order, err
	},
	"Joins of values": func(tx *gorm.DB) (any, error) {
		var found []parcelWith
		err := tx.Joins("Order").Find(&found).Error
		return &first(found).Order, err
	},
	"Joins of a model with a version": func(tx *gorm.DB) (any, error) {
		var found lineOf
		err := tx.Joins("Order").Take(&found).Error
		return found.Order, err
	},
	"Joins of Joins": func(tx *gorm.DB) (any, error) {
		var found []parcelTo
		err := tx.Joins("Line.Order").Find(&found).Error
		return first(found).Line.Order, err
	},
	"Joins with a row lock": func(tx *gorm.DB) (any, error) {
		var found lineOf
		err := tx.InnerJoins("Order").Clauses(clause.Locking{Strength: "UPDATE"}).Take(&found).Error
		return found.Order, err
	},
	"Joins of a type other than Model": func(tx *gorm.DB) (any, error) {
		var found []parcelOf
		err := tx.Model(&parcelWith{}).Joins("Order").Find(&found).Error
		return first(found).Order, err
	},
	"Joins of values of a type other than Model": func(tx *gorm.DB) (any, error) {
		var found parcelWith
		err := tx.Model(&parcelOf{}).Joins("Order").Take(&found).Error
		return &found.Order, err
	},
	"a join in text": func(tx *gorm.DB) (any, error) {
		var found []parcelOf
		err := tx.Model(&parcel{}).Select(`parcels.id, o.id AS "Order__id", o.version AS "Order__version"`).Joins("JOIN lined_orders o ON o.id = order_id").Find(&found).Error
		return first(found).Order, err
	},
	"a join in raw SQL": func(tx *gorm.DB) (any, error) {
		var found []parcelOf
		err := tx.Raw(`SELECT p.id, o.id AS "Order__id", o.version AS "Order__version" FROM parcels p JOIN lined_orders o ON o.id = order_id`).Find(&found).Error
		return first(found).Order, err
	},
	"a join under other names": func(tx *gorm.DB) (any, error) {
		var found parcelOf
		err := tx.Model(&parcel{}).Select(`parcels.id, o.id AS oid, o.version AS oversion`).Joins("JOIN lined_orders o ON o.id = order_id").
			MapColumns(map[string]string{"oid": "Order__id", "oversion": "Order__version"}).Take(&found).Error
		return found.Order, err
	},
	"a view of a join": func(tx *gorm.DB) (any, error) {
		var found []parcelOf
		err := tx.Table("parcel_view").Find(&found).Error
		return first(found).Order, err
	},
	"a model in a form": func(tx *gorm.DB) (any, error) {
		var found []labeled
		err := tx.Model(&parcel{}).Select("l.*, 'x' AS title").Joins("JOIN lined_lines l ON l.order_id = parcels.order_id").Find(&found).Error
		return &first(found).LinedLine, err
	},
	"Association of forms": func(tx *gorm.DB) (any, error) {
		var found []struct{ stand.LinedLine }
		err := tx.Model(&stand.LinedOrder{ID: 1}).Association("Lines").Find(&found)
		return &first(found).LinedLine, err
	},
	"FindInBatches": func(tx *gorm.DB) (any, error) {
		var found, kept []*parcelOf
		err := tx.Model(&parcelWith{}).Joins("Order").FindInBatches(&found, 1, func(*gorm.DB, int) error {
			kept = append(kept, found...)
			return nil
		}).Error
		return (*first(kept)).Order, err
	},
}

type lineOf struct {
	ID, OrderID int64
	Order       *stand.LinedOrder
	Version     int64 `gormlock:"version"`
}

func (lineOf) TableName() string { return "lined_lines" }

type parcelTo struct {
	ID, OrderID int64
	Line        *lineOf `gorm:"foreignKey:OrderID;references:OrderID"`
}

func (parcelTo) TableName() string { return "parcels" }

// first is the first of all, or a new one.
func first[T any](all []T) *T {
	if len(all) == 0 {
		return new(T)
	}
	return &all[0]
}

// undone are the transactions that are rolled back, whether gormlock sees it or not.
func undone() map[string]func(t *testing.T) (db *gorm.DB, within stand.Transacting) {
	all := map[string]func(t *testing.T) (*gorm.DB, stand.Transacting){}
	for name, open := range stand.Unseen {
		all[name] = open
	}
	for name, within := range map[string]func(db *gorm.DB, fn func(tx *gorm.DB) error) error{
		"Transaction":          func(db *gorm.DB, fn func(tx *gorm.DB) error) error { return db.Transaction(fn) },
		"gormlock.Transaction": func(db *gorm.DB, fn func(tx *gorm.DB) error) error { return gormlock.Transaction(db, fn) },
		"a nested transaction": func(db *gorm.DB, fn func(tx *gorm.DB) error) (err error) {
			return errors.Join(db.Transaction(func(tx *gorm.DB) error {
				err = tx.Transaction(fn)
				return nil
			}), err)
		},
		"a savepoint in raw SQL": func(db *gorm.DB, fn func(tx *gorm.DB) error) (err error) {
			return errors.Join(db.Transaction(func(tx *gorm.DB) error {
				failed := tx.Exec("SAVEPOINT a").Error
				err = fn(tx)
				return errors.Join(failed, tx.Exec("ROLLBACK TO a").Error)
			}), err)
		},
	} {
		all[name] = func(t *testing.T) (*gorm.DB, stand.Transacting) {
			t.Helper()
			db := stand.OpenLined(t, gormlock.New())
			return db, func(fn func(tx *gorm.DB) error) error { return within(db, fn) }
		}
	}
	return all
}

// withParcel stores an order with a line, and what refers to it.
func withParcel(t *testing.T, db *gorm.DB) {
	t.Helper()
	stand.Must(t, db.AutoMigrate(&parcel{}))
	stand.MustDo(t, db.Create(&stand.LinedOrder{ID: 1, Lines: []stand.LinedLine{{ID: 1, Qty: 1}}}))
	stand.MustDo(t, db.Create(&parcel{ID: 1, OrderID: 1}))
	stand.MustDo(t, db.Exec(`CREATE VIEW parcel_view AS SELECT p.id, order_id, o.id AS "Order__id", o.version AS "Order__version" FROM parcels p JOIN lined_orders o ON o.id = order_id`))
}

const move = "UPDATE lined_orders SET version = version + 1; UPDATE lined_lines SET version = version + 1"

// V1, G31: wherever a read puts rows of versioned models, a rollback reaches them, and so does the end of a transaction that nobody sees.
func TestRollback_ofWhateverAReadFills(t *testing.T) {
	t.Parallel()
	for end, open := range undone() {
		_, isUnseen := stand.Unseen[end]
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			db, within := open(t)
			withParcel(t, db)
			for name, read := range filled {
				if name == scannedJoins && isUnseen {
					continue
				}
				var row any
				if err := within(func(tx *gorm.DB) (err error) {
					stand.MustDo(t, tx.Exec(move))
					row, err = read(tx)
					stand.Must(t, err)
					return errUndo
				}); !errors.Is(err, errUndo) {
					t.Fatal(name, err)
				}
				mustKeepRivals(t, db, name, saving(row))
			}
		})
	}
}

// mustKeepRivals fails the test if a write by what was filled before a rollback overwrites what rivals have stored since.
func mustKeepRivals(t *testing.T, db *gorm.DB, name string, write func(db *gorm.DB) error) {
	t.Helper()
	for range 3 {
		stand.MustDo(t, db.Exec(move)) // the rival
		if err := write(db); !errors.Is(err, gormlock.ErrVersionMissing) && !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("%s: it was written: %v", name, err)
		}
	}
}

func saving(row any) func(db *gorm.DB) error {
	return func(db *gorm.DB) error { return db.Omit(clause.Associations).Save(row).Error }
}

// What was read in a transaction that had not written, or that is committed, can be saved.
func TestCommit_ofWhateverAReadFills(t *testing.T) {
	t.Parallel()
	for end, open := range undone() {
		_, isUnseen := stand.Unseen[end]
		if end != "Transaction" && !isUnseen {
			continue
		}
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			db, within := open(t)
			withParcel(t, db)
			for name, read := range filled {
				var row any
				stand.Must(t, within(func(tx *gorm.DB) (err error) {
					if !isUnseen {
						stand.MustDo(t, tx.Exec(move))
					}
					row, err = read(tx)
					return err
				}))
				if err := saving(row)(db); err != nil {
					t.Errorf("%s: %+v was not saved: %v", name, row, err)
				}
			}
		})
	}
}
