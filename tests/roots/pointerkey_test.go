package roots_test

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// pointedID is a uuid whose methods have its pointer, so a value by itself knows not how it is sent or read.
type pointedID [16]byte

func (id *pointedID) Value() (driver.Value, error) {
	if id == nil {
		return nil, nil //nolint:nilnil // NULL
	}
	s := hex.EncodeToString(id[:])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-"), nil
}

func (id *pointedID) Scan(value any) error {
	text, is := value.(string)
	if !is {
		return fmt.Errorf("unable to scan %T", value)
	}
	bytes, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	copy(id[:], bytes)
	return err
}

type pointedRoot struct {
	ID      *pointedID `gorm:"type:uuid;primaryKey"`
	N       int
	Parts   []pointedPart `gorm:"foreignKey:RootID"`
	Version int64         `gorm:"not null;default:1" gormlock:"version"`
}

type pointedPart struct {
	ID     int64
	RootID *pointedID   `gorm:"type:uuid"`
	Root   *pointedRoot `gorm:"foreignKey:RootID" gormlock:"root"`
	N      int
}

// A root whose key is a pointer, and whose type has its methods on pointers, moves with its parts.
func TestRoot_withAPointerForAKey(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&pointedRoot{}, &pointedPart{}})
	root := pointedRoot{ID: &pointedID{1, 2, 3}}
	stand.MustDo(t, db.Create(&root))
	part := pointedPart{RootID: root.ID, N: 1}
	stand.MustDo(t, db.Create(&part))
	stand.MustDo(t, db.Model(&part).Update("n", 2))
	var read pointedRoot
	stand.MustDo(t, db.Preload("Parts").First(&read, "id = ?", root.ID))
	stand.Equal(t, "the root's version", read.Version, 3)
	read.N = 1
	stand.MustDo(t, db.Save(&read))
	stand.MustDo(t, db.Delete(&read.Parts[0]))
	stand.MustDo(t, db.First(&read, "id = ?", root.ID))
	if read.Version < 5 {
		t.Errorf("the root is at version %d after its part was deleted", read.Version)
	}
}
