package versions_test

import (
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// older has columns that a migration added to a table with rows: NULL is in them, and the fields cannot hold it.
type older struct {
	ID    int64
	Name  string
	Qty   int
	Small uint8
	Price float64
	Open  bool
	At    time.Time
	Note  string
	Lock  int64 `gorm:"column:lock_version;default:0" gormlock:"version,rails"`
}

// What was read as zero from NULL is unchanged: the struct cannot tell them apart. What others write there is not.
func TestIfUnchanged_whereTheRowHasNULL(t *testing.T) {
	t.Parallel()
	for server, open := range map[string]func(t *testing.T) *gorm.DB{
		"postgres": func(t *testing.T) *gorm.DB { t.Helper(); return stand.Versioned(t, []any{&older{}}) },
		"sqlite":   func(t *testing.T) *gorm.DB { t.Helper(); return stand.OnSQLite(t, []any{&older{}}) },
		"mariadb":  func(t *testing.T) *gorm.DB { t.Helper(); return mariaserver.Open(t, []any{&older{}}) },
	} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			stand.MustDo(t, db.Exec("INSERT INTO olders (id, name, lock_version) VALUES (1, 'old', NULL)"))
			read := stand.Row[older](t, db, 1)
			before := read
			stand.MustDo(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&before)).Update("name", "new"))
			for _, column := range []string{"qty", "small", "price", "open", "note"} {
				read, before = stand.Row[older](t, db, 1), stand.Row[older](t, db, 1)
				stand.MustDo(t, db.Exec("UPDATE olders SET "+column+" = '1' WHERE id = 1"))
				stand.MustStale(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&before)).Update("name", "stale").Error)
				read, before = stand.Row[older](t, db, 1), stand.Row[older](t, db, 1)
				stand.MustDo(t, db.Exec("UPDATE olders SET "+column+" = NULL WHERE id = 1"))
				stand.MustStale(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&before, column)).Update("name", "stale").Error)
			}
			if row := stand.Row[older](t, db, 1); row.Name != "new" {
				t.Errorf("stored %+v", row)
			}
		})
	}
}

// secret has a column that GORM writes and never reads.
type secret struct {
	ID      int64
	Title   string
	Pass    string `gorm:"->:false;<-:create"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

func TestIfUnchanged_leavesOutWhatIsNotRead(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&secret{}})
	stand.Made(t, db, secret{Title: "a", Pass: "p"})
	read := stand.Row[secret](t, db, 1)
	before := read
	stand.MustDo(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&before)).Update("title", "b"))
	err := db.Model(&read).Clauses(gormlock.IfUnchanged(&before, "pass")).Update("title", "c").Error
	if err == nil || !strings.Contains(err.Error(), "secret.Pass cannot be compared: its tag keeps GORM from reading the column") {
		t.Errorf("a column that is named: %v", err)
	}
}
