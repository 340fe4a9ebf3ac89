package versions_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// thread has a field that only some queries fill: it is no column of the table.
type thread struct {
	ID      int64
	ForumID *int64
	Title   string
	Unread  int64
	Replies int64 `gorm:"->;-:migration"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type forum struct {
	ID      int64
	Name    string
	Threads []thread
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// withReplies reads the thread with what the query works out.
func withReplies(t *testing.T, db *gorm.DB) (read thread) {
	t.Helper()
	stand.MustDo(t, db.Select("threads.*, (SELECT 3) AS replies").First(&read))
	return read
}

// computedWrites write "new" as the title of thread 1, and none of them the replies.
var computedWrites = map[string]func(t *testing.T, db *gorm.DB) error{
	"Save": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := withReplies(t, db)
		read.Title = "new"
		err := db.Save(&read).Error
		if read.Replies != 3 {
			t.Errorf("after Save there are %d replies", read.Replies)
		}
		return err
	},
	"Save of a slice": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := []thread{withReplies(t, db)}
		read[0].Title = "new"
		err := db.Save(&read).Error
		if read[0].Replies != 3 {
			t.Errorf("after Save there are %d replies", read[0].Replies)
		}
		return err
	},
	"Save of all associations": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		var f forum
		stand.MustDo(t, db.Preload("Threads").First(&f))
		f.Threads[0].Title = "new"
		return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&f).Error
	},
	"UpdateAll": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := withReplies(t, db)
		read.Title = "new"
		return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&read).Error
	},
	"UpdateAll of gorm.G": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := withReplies(t, db)
		read.Title = "new"
		return gorm.G[thread](db, clause.OnConflict{UpdateAll: true}).Create(t.Context(), &read)
	},
	"AssignmentColumns": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		onConflict := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"title"})}
		return db.Clauses(onConflict, gormlock.IgnoreVersion()).Create(&thread{ID: 1, Title: "new"}).Error
	},
	"DoNothing, then Update": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := thread{ID: 1, Title: "other"}
		stand.MustDo(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&read))
		return db.Model(&thread{ID: 1}).Clauses(gormlock.ExpectVersion(1)).Update("title", "new").Error
	},
	"a map": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		return db.Model(&thread{ID: 1}).Updates(map[string]any{"title": "new", "version": 1}).Error
	},
	"RETURNING": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := withReplies(t, db)
		return db.Model(&read).Clauses(clause.Returning{}).Update("title", "new").Error
	},
	"RETURNING of many": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		var all []thread
		return db.Model(&all).Clauses(clause.Returning{}).Where("id > 0").Update("title", "new").Error
	},
	"RETURNING what is computed": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := withReplies(t, db)
		read.Title = "new"
		returned := clause.Returning{Columns: []clause.Column{{Name: "*"}, {Name: "4 AS replies", Raw: true}}}
		err := db.Clauses(clause.OnConflict{UpdateAll: true}, returned).Create(&read).Error
		if read.Replies != 4 {
			t.Errorf("%d replies were returned", read.Replies)
		}
		return err
	},
	"IfUnchanged": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := withReplies(t, db)
		return db.Model(&read).Clauses(gormlock.IfUnchanged(&read)).Update("title", "new").Error
	},
	"SaveMerged": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := withReplies(t, db)
		base := read
		read.Title = "new"
		stand.MustDo(t, db.Exec("UPDATE threads SET unread = 9, version = version + 1"))
		return gormlock.SaveMerged(db, &read, &base)
	},
	"LockRow": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		return db.Transaction(func(tx *gorm.DB) error {
			read := thread{ID: 1}
			stand.Must(t, gormlock.LockRow(tx, &read))
			return tx.Model(&read).Update("title", "new").Error
		})
	},
	"Claim": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		_, err := gormlock.Claim[thread](db, 1, map[string]any{"title": "new"})
		return err
	},
	"after a rollback": func(t *testing.T, db *gorm.DB) error {
		t.Helper()
		read := withReplies(t, db)
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Model(&read).Update("title", "undone"))
			return gorm.ErrInvalidData
		})
		read.Title = "new"
		return db.Save(&read).Error
	},
}

// A field that is no column of the table is never named in a statement.
func TestComputed(t *testing.T) {
	t.Parallel()
	for name, write := range computedWrites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&forum{}, &thread{}})
			stand.MustDo(t, db.Create(&forum{Name: "one", Threads: []thread{{Title: "old"}}}))
			stand.Must(t, write(t, db))
			if stored := stand.Row[thread](t, db, 1); stored.Title != "new" || stored.Version < 2 {
				t.Fatalf("stored %+v", stored)
			}
			stand.Must(t, gormlock.Check(db, &forum{}, &thread{}))
		})
	}
}

// tally has a column that the server computes, and that no migration of GORM's makes.
type tally struct {
	ID      int64
	Count   int64
	Twice   int64 `gorm:"->;-:migration"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A column that the server computes is read with the others.
func TestComputed_byTheServer(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(t *testing.T, db *gorm.DB, read *tally) error{
		"update": func(t *testing.T, db *gorm.DB, read *tally) error {
			t.Helper()
			return db.Model(read).Clauses(clause.Returning{}).Update("count", gorm.Expr("count + 1")).Error
		},
		"upsert": func(t *testing.T, db *gorm.DB, read *tally) error {
			t.Helper()
			read.Count++
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(read).Error
		},
		"many": func(t *testing.T, db *gorm.DB, read *tally) error {
			t.Helper()
			var all []tally
			err := db.Model(&all).Clauses(clause.Returning{}).Where("id > 0").Update("count", 2).Error
			*read = all[0]
			return err
		},
		"create": func(t *testing.T, db *gorm.DB, read *tally) error {
			t.Helper()
			*read = tally{Count: 2}
			return db.Clauses(clause.Returning{}).Create(read).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&tally{}})
			stand.MustDo(t, db.Exec("ALTER TABLE tallies ADD twice bigint GENERATED ALWAYS AS (count * 2) STORED"))
			read := stand.Made(t, db, tally{Count: 1})
			stand.Must(t, write(t, db, &read))
			if read.Count != 2 || read.Twice != 4 {
				t.Errorf("%+v", read)
			}
			stand.Must(t, db.Save(&read).Error)
		})
	}
}

// A rival's write that shows only in a column which the server computes is seen by IfUnchanged. Each server says in its own way which columns
// the table has.
func TestComputed_isCompared(t *testing.T) {
	t.Parallel()
	for server, open := range map[string]func(t *testing.T) *gorm.DB{
		"postgres": func(t *testing.T) *gorm.DB { t.Helper(); return stand.Versioned(t, []any{&tally{}}) },
		"sqlite":   func(t *testing.T) *gorm.DB { t.Helper(); return stand.OnSQLite(t, []any{&tally{}}) },
		"mariadb":  func(t *testing.T) *gorm.DB { t.Helper(); return mariaserver.Open(t, []any{&tally{}}) },
	} {
		for column, has := range map[string]bool{"with": true, "without": false} {
			t.Run(server+"/"+column, func(t *testing.T) {
				t.Parallel()
				db := open(t)
				if has {
					stand.MustDo(t, db.Exec("ALTER TABLE tallies ADD twice bigint"))
				}
				stand.Made(t, db, tally{Count: 1})
				read := stand.Row[tally](t, db, 1)
				if has {
					stand.MustDo(t, db.Exec("UPDATE tallies SET twice = 7"))
					stand.MustStale(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&read)).Update("count", 2).Error)
					read = stand.Row[tally](t, db, 1)
				}
				stand.MustDo(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&read)).Update("count", 2))
			})
		}
	}
}

// byServer has the version that the server keeps.
type byServer struct {
	ID    int64
	Title string
	Stamp uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

func TestComputed_xmin(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&byServer{}})
	read := byServer{ID: 1, Title: "old"}
	stand.MustDo(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&read))
	read.Title = "new"
	stand.MustDo(t, db.Save(&read))
}
