package versions_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	unreadByte struct {
		ID      int64
		Title   string
		Seen    int64 `gormlock:"unversioned"`
		Version uint8 `gormlock:"version"`
	}
	unreadSmall struct {
		ID      int64
		Title   string
		Seen    int64 `gormlock:"unversioned"`
		Version int16 `gormlock:"version,hibernate"`
	}
)

// A row may have the number by which a struct counts as not read, if another program has put it there. No write of the struct takes that for the
// version that it has read.
func TestUnread_isNoVersionOfARow(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&unreadByte{}, &unreadSmall{}}, func(t *testing.T, db *gorm.DB) {
		noVersionOfARow[unreadByte](t, db, "unread_bytes", 255)
		noVersionOfARow[unreadSmall](t, db, "unread_smalls", -1)
	})
}

func noVersionOfARow[T any](t *testing.T, db *gorm.DB, table string, version int) {
	t.Helper()
	for how, write := range map[string]func(db *gorm.DB, row *T) error{
		"Save":            func(db *gorm.DB, row *T) error { return db.Save(row).Error },
		"Save of a slice": func(db *gorm.DB, row *T) error { return db.Save(&[]*T{row}).Error },
		"two": func(db *gorm.DB, row *T) error {
			other := stand.Row[T](t, db, 2)
			return db.Model(&[]*T{row, &other}).Update("title", "mine").Error
		},
		"preserved":   func(db *gorm.DB, row *T) error { return db.Clauses(gormlock.PreserveVersion()).Save(row).Error },
		"Update":      func(db *gorm.DB, row *T) error { return db.Model(row).Update("title", "mine").Error },
		"unversioned": func(db *gorm.DB, row *T) error { return db.Model(row).Update("seen", 1).Error },
		"upsert":      func(db *gorm.DB, row *T) error { return db.Clauses(stand.UpdateAll).Create(row).Error },
		"Delete":      func(db *gorm.DB, row *T) error { return db.Delete(row).Error },
		"VerifyVersion": func(db *gorm.DB, row *T) error {
			return db.Transaction(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, row) })
		},
	} {
		stand.MustDo(t, db.Exec("DELETE FROM "+table))
		stand.MustDo(t, db.Exec("INSERT INTO "+table+" (id, title, seen, version) VALUES (1, 'rival', 0, ?), (2, 'other', 0, 1)", version))
		row := stand.Row[T](t, db, 1)
		was := row
		if err := write(db, &row); err == nil {
			t.Errorf("%s of %+v was done: %+v", how, was, stand.Row[T](t, db, 1))
		}
		stand.Equal(t, how+": the row", any(stand.Row[T](t, db, 1)), any(was))
	}
}

type unreadStamp struct {
	ID      int64
	Note    string
	Version time.Time `gorm:"type:timestamp" gormlock:"version"`
}

// A column without a time zone gives another time in another zone.
func TestUnread_inAnotherZone(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"UTC", "CET", "MET", "EST5EDT", "Japan", "Poland", "NZ"} {
		db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema(), pgtest.Param("TimeZone", zone))
		stand.Must(t, db.AutoMigrate(&unreadStamp{}))
		stand.MustDo(t, db.Exec("DELETE FROM unread_stamps"))
		stand.Made(t, db, unreadStamp{ID: 1})
		var mine unreadStamp
		stand.InTx(t, db, func(tx *gorm.DB) {
			var err error
			stand.MustDo(t, tx.Model(&unreadStamp{}).Where("id = 1").Update("note", "a"))
			mine, err = gorm.G[unreadStamp](tx).First(t.Context())
			stand.Must(t, err)
		})
		stand.MustDo(t, db.Model(&unreadStamp{}).Where("id = 1").Update("note", "rival"))
		if tag, err := etag.Of(&mine); !errors.Is(err, etag.ErrNoVersion) {
			t.Errorf("%s: it has the tag %s", zone, tag)
		}
		again := mine
		stand.MustBeUnread(t, db.Save(&mine).Error)
		stand.MustBeUnread(t, db.Clauses(stand.UpdateAll).Create(&mine).Error)
		stand.MustDo(t, db.Exec("DELETE FROM unread_stamps"))
		stand.MustDo(t, db.Create(&again))
		if row := stand.Row[unreadStamp](t, db, 1); row.Version.Year() < 2000 {
			t.Errorf("%s: created again, the row is %v", zone, row)
		}
	}
}

type unreadNarrow struct {
	ID      uint
	Note    string
	Version uint `gorm:"not null;default:1" gormlock:"version"`
}

// The number that stands for none need not fit into the column.
func TestUnread_inANarrowColumn(t *testing.T) {
	t.Parallel()
	for _, options := range [][]gormlock.Option{nil, {gormlock.PlainTransactions()}} {
		for _, narrow := range []string{"integer", "smallint", "small_count", "numeric(4)"} {
			db := pgtest.Open(t, pgtest.Plugin(gormlock.New(options...)), pgtest.Schema())
			stand.MustDo(t, db.Exec("DROP DOMAIN IF EXISTS small_count CASCADE"))
			stand.MustDo(t, db.Exec("CREATE DOMAIN small_count AS smallint CHECK (value >= 0)"))
			stand.MustDo(t, db.Exec("DROP TABLE IF EXISTS unread_narrows"))
			stand.MustDo(t, db.Exec("CREATE TABLE unread_narrows (id bigserial PRIMARY KEY, note text NOT NULL DEFAULT '', version "+narrow+" NOT NULL DEFAULT 1)"))
			row := stand.Made(t, db, unreadNarrow{})
			var mine, other unreadNarrow
			stand.InTx(t, db, func(tx *gorm.DB) {
				var err error
				stand.MustDo(t, tx.Model(&unreadNarrow{}).Where("id = ?", row.ID).Update("note", "x"))
				mine, err = gorm.G[unreadNarrow](tx).First(t.Context())
				stand.Must(t, err)
				stand.MustDo(t, tx.First(&other))
			})
			for _, unread := range []*unreadNarrow{&mine, &other} {
				stand.MustBeUnread(t, db.Save(unread).Error)
				stand.MustBeUnread(t, db.Delete(unread).Error)
				stand.MustBeUnread(t, db.Model(unread).Update("note", "x").Error)
			}
		}
	}
}

// A map that a rollback has left unread stores no such number.
func TestUnread_inAMapThatIsCreated(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&unreadByte{}})
	row := map[string]any{}
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.Made(t, tx, unreadByte{ID: 1, Title: "a"})
		stand.MustDo(t, tx.Model(&unreadByte{}).Take(&row))
	})
	stand.MustDo(t, db.Model(&unreadByte{}).Create(row))
	made := stand.Row[unreadByte](t, db, 1)
	stand.Equal(t, "the version", made.Version, 1)
	stand.MustDo(t, db.Model(&made).Update("title", "b"))
}

// A form may be narrower than the column, and hold a number that its row has.
func TestUnread_inANarrowForm(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	row := stand.Made(t, db, stand.Account{Balance: 1})
	stand.MustDo(t, db.Exec("UPDATE accounts SET version = 255"))
	form := struct {
		Balance int64
		Version uint8
	}{2, 255}
	stand.MustBeUnread(t, db.Model(&stand.Account{}).Where("id = ?", row.ID).Updates(&form).Error)
	stand.Equal(t, "the balance", stand.Row[stand.Account](t, db, row.ID).Balance, 1)
}

type (
	zeroNumber struct {
		ID      int64 `gorm:"primaryKey;autoIncrement:false"`
		Note    string
		Version int64 `gormlock:"version"`
	}
	zeroPath struct {
		Path    string `gorm:"primaryKey;size:50"`
		Note    string
		Version int64 `gormlock:"version"`
	}
)

// A row may have 0 or an empty text for its key. A struct that was read from it is not new.
func TestUpsert_ofAZeroKey(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&zeroNumber{}, &zeroPath{}}, func(t *testing.T, db *gorm.DB) {
		ofAZeroKey(t, db, func(row *zeroNumber) *string { return &row.Note })
		ofAZeroKey(t, db, func(row *zeroPath) *string { return &row.Note })
	})
}

func ofAZeroKey[T any](t *testing.T, db *gorm.DB, note func(*T) *string) {
	t.Helper()
	for how, write := range map[string]func(list *[]T) error{
		"Save of a slice": func(list *[]T) error { return db.Save(list).Error },
		"upsert":          func(list *[]T) error { return db.Clauses(stand.UpdateAll).Create(list).Error },
		"upsert of one":   func(list *[]T) error { return db.Clauses(stand.UpdateAll).Create(&(*list)[0]).Error },
	} {
		stand.MustDo(t, db.Where("1 = 1").Delete(new(T)))
		stand.MustDo(t, db.Create(new(T)))
		var list, now []T
		stand.MustDo(t, db.Find(&list))
		*note(&list[0]) = "mine"
		stand.Must(t, write(&list))
		stand.MustDo(t, db.Model(new(T)).Where("1 = 1").Update("note", "rival"))
		*note(&list[0]) = "mine again"
		err := write(&list)
		stand.MustDo(t, db.Find(&now))
		if err == nil || *note(&now[0]) != "rival" {
			t.Errorf("%s: %v, the row is %+v", how, err, now[0])
		}
	}
}

type unreadMail struct {
	ID      int64
	Email   string `gorm:"unique"`
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// unreadCall makes its key itself.
type unreadCall struct {
	ID      string `gorm:"type:uuid;primaryKey"`
	Email   string `gorm:"unique"`
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (c *unreadCall) BeforeCreate(tx *gorm.DB) error {
	if c.ID != "" {
		return nil
	}
	return tx.Session(&gorm.Session{NewDB: true}).Raw("SELECT gen_random_uuid()").Scan(&c.ID).Error
}

// An upsert may find the row by another column than the key, which was not read. A struct that has a version and no key is no new one.
func TestUnread_withoutAKey(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&unreadMail{}, &unreadCall{}})
	withoutAKey(t, db, func(m *unreadMail) (email, note *string, version *int64) { return &m.Email, &m.Note, &m.Version })
	withoutAKey(t, db, func(m *unreadCall) (email, note *string, version *int64) { return &m.Email, &m.Note, &m.Version })
}

func withoutAKey[T comparable](t *testing.T, db *gorm.DB, of func(*T) (email, note *string, version *int64)) {
	t.Helper()
	byEmail := clause.OnConflict{Columns: []clause.Column{{Name: "email"}}}
	all, one, named := byEmail, byEmail, byEmail
	all.UpdateAll, one.DoUpdates = true, clause.AssignmentColumns([]string{"note"})
	named.Columns, named.OnConstraint, named.DoUpdates = nil, "uni_"+db.NamingStrategy.TableName(reflect.TypeFor[T]().Name())+"_email", one.DoUpdates
	made := new(T)
	email, _, _ := of(made)
	*email = "a"
	stand.MustDo(t, db.Create(made))
	for how, clause := range map[string]clause.OnConflict{"UpdateAll": all, "a column": one, "the name of the constraint": named} {
		for _, rolledBack := range []bool{true, false} {
			var mine, before, now T
			read := func(tx *gorm.DB) { stand.MustDo(t, tx.Select("email", "note", "version").Take(&mine)) }
			if rolledBack {
				stand.InTx(t, db, func(tx *gorm.DB) {
					stand.MustDo(t, tx.Model(new(T)).Where("1 = 1").Update("note", "undone"))
					read(tx)
				})
			} else {
				read(db)
			}
			stand.MustDo(t, db.Model(new(T)).Where("1 = 1").Update("note", "rival"))
			stand.MustDo(t, db.Take(&before))
			_, note, _ := of(&mine)
			*note = "mine"
			if err := db.Clauses(clause).Create([]*T{&mine}).Error; !errors.Is(err, gormlock.ErrVersionMissing) && !errors.Is(err, gormlock.ErrStale) {
				t.Errorf("%T, %s, rolled back %v: %v", mine, how, rolledBack, err)
			}
			stand.MustDo(t, db.Take(&now))
			stand.Equal(t, how, now, before)
		}
	}
}

// A struct that counts as not read is not stored again when its row is gone: whoever deleted it had a reason.
func TestUnread_whoseRowIsGone(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&unreadMail{}, &unreadZero{}})
	rowIsGone(t, db, &unreadMail{Email: "a"}, func(m *unreadMail) *int64 { return &m.Version }, 1)
	rowIsGone(t, db, &unreadZero{Email: "a"}, func(m *unreadZero) *int64 { return &m.Version }, 0)
}

// unreadZero begins at version 0.
type unreadZero struct {
	ID      int64
	Email   string `gorm:"unique"`
	Note    string
	Version int64 `gorm:"not null;default:0" gormlock:"version,rails"`
}

func rowIsGone[T any](t *testing.T, db *gorm.DB, made *T, of func(*T) *int64, first int64) {
	t.Helper()
	stand.MustDo(t, db.Create(made))
	var mine T
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.MustDo(t, tx.Model(new(T)).Where("1 = 1").Update("note", "undone"))
		stand.MustDo(t, tx.Take(&mine))
	})
	stand.MustDo(t, db.Delete(made))
	for how, write := range map[string]func(tx *gorm.DB) error{
		"Save":            func(tx *gorm.DB) error { return tx.Save(&mine).Error },
		"Save of a slice": func(tx *gorm.DB) error { return tx.Save([]*T{&mine}).Error },
		"Save and Select": func(tx *gorm.DB) error { return tx.Select("*").Save(&mine).Error },
		"Updates":         func(tx *gorm.DB) error { return tx.Model(&mine).Updates(map[string]any{"note": "x"}).Error },
		"Save, all saved": func(tx *gorm.DB) error {
			return tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(&mine).Error
		},
		"Save, no default": func(tx *gorm.DB) error {
			return tx.Session(&gorm.Session{SkipDefaultTransaction: true}).Save(&mine).Error
		},
	} {
		if err := write(db); !errors.Is(err, gormlock.ErrVersionMissing) && !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("%T, %s: %v", mine, how, err)
		}
		var n int64
		stand.MustDo(t, db.Model(new(T)).Count(&n))
		stand.Equal(t, how, n, 0)
		stand.Equal(t, how, *of(&mine), -1)
	}
	stand.MustDo(t, db.Create(&mine)) // as the error says
	stand.Equal(t, "the version of the new row", *of(&mine), first)
}
