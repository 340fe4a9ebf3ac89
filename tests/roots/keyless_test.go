package roots_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type keylessRoot struct {
	ID      int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type keyless struct {
	Note   string
	RootID int64
	Root   *keylessRoot `gormlock:"root"`
}

// The rows that a bulk statement writes are found again by their primary key: a part without one is refused.
func TestRoot_partWithoutAKey(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema())
	stand.Must(t, db.AutoMigrate(&keylessRoot{}, &keyless{}))
	stand.Must(t, db.Create(&keyless{RootID: 1, Root: &keylessRoot{ID: 1}}).Error)
	stand.Must(t, db.Use(gormlock.New()))
	for name, write := range map[string]func() error{
		"create": func() error { return db.Create(&keyless{RootID: 1}).Error },
		"bulk": func() error {
			return db.Session(&gorm.Session{}).Model(&keyless{}).Where("root_id = 1").Update("note", "x").Error
		},
		"delete": func() error { return db.Where("root_id = 1").Delete(&keyless{}).Error },
	} {
		if err := write(); err == nil || !strings.Contains(err.Error(), "has no primary key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
