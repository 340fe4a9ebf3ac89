package mariadb_test

import (
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type tiny struct {
	ID      int64
	State   string `gorm:"size:20"`
	Version int64  `gorm:"type:tinyint;not null;default:1" gormlock:"version"`
}

type tinyUnsigned struct {
	ID      int64
	State   string `gorm:"size:20"`
	Version uint64 `gorm:"type:tinyint unsigned;not null;default:1" gormlock:"version"`
}

type medium struct {
	ID      int64
	State   string `gorm:"size:20"`
	Version int64  `gorm:"type:mediumint;not null;default:1" gormlock:"version"`
}

// Where it is not strict the server keeps the largest number that a column holds instead of a larger one. A version at its end
// is an error on each path: two writers could write at one version otherwise.
func TestVersionAtItsEnd(t *testing.T) {
	t.Parallel()
	for mode, param := range map[string]string{"strict": "maxAllowedPacket=0", "lax": "sql_mode=%27%27"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := mariaserver.Open(t, []any{&tiny{}, &tinyUnsigned{}, &medium{}}, mariaserver.Param(param))
			stand.Must(t, db.Exec("INSERT INTO tinies VALUES (1,'',127)").Error)
			stand.Must(t, db.Exec("INSERT INTO tiny_unsigneds VALUES (1,'',254)").Error)
			stand.Must(t, db.Exec("INSERT INTO media VALUES (1,'',8388607)").Error)
			last := tinyUnsigned{ID: 1, Version: 254}
			stand.Must(t, db.Save(&last).Error)
			stand.Equal(t, "version", last.Version, 255)
			for name, err := range map[string]error{
				"update":         db.Model(&tiny{ID: 1, Version: 127}).Update("state", "x").Error,
				"save":           db.Save(&tiny{ID: 1, Version: 127, State: "x"}).Error,
				"slice":          db.Save(&[]tiny{{ID: 1, Version: 127, State: "x"}}).Error,
				"touch":          gormlock.Touch(db, &tiny{ID: 1, Version: 127}),
				"bulk":           db.Model(&tiny{}).Where("id = 1").Update("state", "x").Error,
				"IgnoreVersion":  db.Clauses(gormlock.IgnoreVersion()).Model(&tiny{ID: 1}).Update("state", "x").Error,
				"upsert":         db.Clauses(stand.UpdateAll).Create(&tiny{ID: 1, State: "x"}).Error,
				"unsigned":       db.Save(&last).Error,
				"unsigned, bulk": db.Model(&tinyUnsigned{}).Where("id = 1").Update("state", "x").Error,
				"medium":         db.Model(&medium{ID: 1, Version: 8388607}).Update("state", "x").Error,
				"medium, bulk":   db.Model(&medium{}).Where("id = 1").Update("state", "x").Error,
			} {
				if err == nil || !strings.Contains(err.Error(), "the largest its column holds") {
					t.Errorf("%s: %v", name, err)
				}
			}
			stand.Equal(t, "row", stand.Row[tiny](t, db, 1), tiny{ID: 1, Version: 127})
			stand.Equal(t, "row", stand.Row[tinyUnsigned](t, db, 1), tinyUnsigned{ID: 1, Version: 255})
			stand.Equal(t, "row", stand.Row[medium](t, db, 1), medium{ID: 1, Version: 8388607})
			stand.Must(t, db.Exec("UPDATE tinies SET version = 126").Error)
			stand.Must(t, db.Model(&tiny{}).Where("id = 1").Update("state", "x").Error)
			stand.Equal(t, "row", stand.Row[tiny](t, db, 1), tiny{ID: 1, State: "x", Version: 127})
		})
	}
}

// The server's words are in the language of the client: what failed is known by its number.
func TestUpsert_inAnotherLanguage(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"de_DE", "ja_JP", "ru_RU"} {
		db := mariaserver.Open(t, []any{&product{}}, mariaserver.Param("lc_messages=%27"+language+"%27"))
		stand.Must(t, db.Create(&product{ID: 1, Code: "a", Version: 5}).Error)
		stand.MustStale(t, db.Save(&[]product{{ID: 1, Code: "b", Version: 4}}).Error)
		stand.MustStale(t, db.Clauses(stand.UpdateAll).Create(&product{ID: 1, Code: "b", Version: 4}).Error)
		stand.Equal(t, "row", stand.Row[product](t, db, 1), product{ID: 1, Code: "a", Version: 5})
	}
}

// MySQL takes NOWAIT and SKIP LOCKED behind FOR SHARE, which MariaDB does not know.
func TestRowLock_sharedOnMySQL(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"8.0.36": "FOR SHARE", "10.11.6-MariaDB": "LOCK IN SHARE MODE"} {
		db := mariaserver.Open(t, nil, mariaserver.Dialect(func(c *mysql.Config) { c.ServerVersion, c.SkipInitializeWithVersion = version, true }))
		for wait, opts := range map[string][]gormlock.RowLockOption{" NOWAIT": {gormlock.Try()}, " SKIP LOCKED": {gormlock.Skip()}} {
			query := db.Session(&gorm.Session{DryRun: true}).Clauses(gormlock.RowLock(gormlock.ForShare, opts...)).Find(&[]plain{})
			stand.Must(t, query.Error)
			if text := query.Statement.SQL.String(); !strings.HasSuffix(text, want+wait) {
				t.Error(version, text)
			}
		}
	}
}

type narrowFence struct {
	ID    int64
	State string `gorm:"size:20"`
	Fence int64  `gorm:"type:integer;not null;default:0" gormlock:"fence"`
}

// A column that holds no 64 bits is refused for tokens: a server that is not strict would keep a smaller number.
func TestFenceInANarrowColumn(t *testing.T) {
	t.Parallel()
	db := open(t, &narrowFence{})
	err := db.Clauses(gormlock.Fence(token(3_000_000_000))).Create(&narrowFence{ID: 1}).Error
	if err == nil || !strings.Contains(err.Error(), "give it the type bigint") {
		t.Error(err)
	}
}
