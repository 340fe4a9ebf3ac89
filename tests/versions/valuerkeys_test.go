package versions_test

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// valuedID is a uuid whose methods have it by value, as those of most such types: its Value panics behind a nil pointer, which database/sql never
// calls.
type valuedID [16]byte

func (id valuedID) Value() (driver.Value, error) {
	s := hex.EncodeToString(id[:])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-"), nil
}

func (id *valuedID) Scan(value any) error {
	bytes, err := hex.DecodeString(strings.ReplaceAll(fmt.Sprint(value), "-", ""))
	copy(id[:], bytes)
	return err
}

type valuedOrder struct {
	ID       *valuedID      `gorm:"type:uuid;primaryKey;default:gen_random_uuid()"`
	ParentID *valuedID      `gorm:"type:uuid"`
	Lines    []valuedLine   `gorm:"foreignKey:OrderID"`
	Children []*valuedOrder `gorm:"foreignKey:ParentID"`
	Title    string
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

type valuedLine struct {
	ID        valuedID     `gorm:"type:uuid;primaryKey;default:gen_random_uuid()"`
	OrderID   *valuedID    `gorm:"type:uuid"`
	Order     *valuedOrder `gorm:"foreignKey:OrderID"`
	Qty       int
	DeletedAt gorm.DeletedAt
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A key may be a nil pointer to a type that cannot say its value without what the pointer leads to. That is NULL.
func TestKeys_thatAreNilPointersToValuers(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&valuedOrder{}, &valuedLine{}})
	graph := func() valuedOrder {
		return valuedOrder{Lines: []valuedLine{{Qty: 1}}, Children: []*valuedOrder{{}, {Lines: []valuedLine{{}}}}}
	}
	stored := graph()
	stand.MustDo(t, db.Create(&stored))
	writes := map[string]func(tx *gorm.DB) error{
		"create": func(tx *gorm.DB) error { o := graph(); return tx.Create(&o).Error },
		"save":   func(tx *gorm.DB) error { o := graph(); return tx.Save(&o).Error },
		"append": func(tx *gorm.DB) error {
			return tx.Model(&valuedOrder{ID: stored.ID, Version: 1}).Association("Lines").Append(&valuedLine{Qty: 2})
		},
		"replace": func(tx *gorm.DB) error {
			o := valuedOrder{}
			return errors.Join(tx.Create(&o).Error, tx.Model(&o).Association("Lines").Replace(&valuedLine{Qty: 2}))
		},
		"save with a new line": func(tx *gorm.DB) error {
			var o valuedOrder
			err := tx.First(&o, "id = ?", stored.ID).Error
			o.Lines = []valuedLine{{}}
			return errors.Join(err, tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(&o).Error)
		},
		"a foreign key that is emptied": func(tx *gorm.DB) error {
			l := valuedLine{Order: &valuedOrder{}}
			return errors.Join(tx.Create(&l).Error, tx.Model(&l).Update("order_id", (*valuedID)(nil)).Error)
		},
		"a deletion that is taken back": func(tx *gorm.DB) error {
			return tx.Unscoped().Model(&valuedLine{}).Where("qty = 1").Update("deleted_at", (*gorm.DeletedAt)(nil)).Error
		},
		"first or create": func(tx *gorm.DB) error {
			return tx.Where(valuedOrder{Title: "none"}).FirstOrCreate(&valuedOrder{}).Error
		},
	}
	stand.Beside(t, writes, func(t *testing.T, write func(tx *gorm.DB) error) {
		stand.Must(t, write(db))
		stand.Must(t, db.Transaction(write))
		errUndo := errors.New("rolled back")
		for _, run := range []func(body func(tx *gorm.DB) error) error{
			func(body func(tx *gorm.DB) error) error { return db.Transaction(body) },
			func(body func(tx *gorm.DB) error) error { return gormlock.Transaction(db, body) },
		} {
			if err := run(func(tx *gorm.DB) error { return errors.Join(write(tx), errUndo) }); !errors.Is(err, errUndo) || strings.Contains(err.Error(), "gormlock") {
				t.Error(err)
			}
		}
	})
}
