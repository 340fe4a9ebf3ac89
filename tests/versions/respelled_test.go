package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	capital struct {
		Code    string `gorm:"primaryKey;type:varchar(40)"`
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	capitalUUID struct {
		Code    string `gorm:"primaryKey;type:uuid"`
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

func (c *capital) BeforeSave(*gorm.DB) error     { c.Code = strings.ToUpper(c.Code); return nil }
func (c *capitalUUID) BeforeSave(*gorm.DB) error { c.Code = strings.ToUpper(c.Code); return nil }

// A hook may spell the key of a new struct anew. The key of a row that was read is another one then, if the server says so.
func TestSave_whereAHookSpellsTheKey(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&capital{}, &capitalUUID{}})
	c := capital{Code: "ab"}
	stand.Must(t, db.Save(&c).Error)
	stand.Equal(t, "struct", c, capital{Code: "AB", Version: 1})
	c.Name = "new"
	stand.Must(t, db.Save(&c).Error)
	stand.Equal(t, "row", stand.Row[capital](t, db, "AB"), capital{Code: "AB", Name: "new", Version: 2})
	c.Code = "ab"
	if err := db.Save(&c).Error; err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("%v", err)
	}

	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	u := capitalUUID{Code: id}
	stand.Must(t, db.Save(&u).Error)
	u.Code, u.Name = id, "new"
	stand.Must(t, db.Save(&u).Error)
	stand.Equal(t, "row", stand.Row[capitalUUID](t, db, id), capitalUUID{Code: id, Name: "new", Version: 2})
	rival := stand.Row[capitalUUID](t, db, id)
	stand.Must(t, db.Save(&rival).Error)
	if err := db.Save(&u).Error; err == nil || !strings.Contains(err.Error(), "stale") {
		t.Errorf("%v", err)
	}
}
