package once_test

import (
	"encoding/json"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// masked hides itself in JSON.
type masked string

func (masked) MarshalJSON() ([]byte, error) { return json.Marshal("***") }

// member has a column that JSON leaves out, holder one that hides itself. Guest has all columns in JSON.
type member struct {
	ID       int64
	Name     string
	Password string `json:"-"`
	Version  int64  `gorm:"not null;default:1" gormlock:"version"`
}

type keyHolder struct {
	ID      int64
	Name    string
	Token   masked
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type guestStay struct {
	Nights int
	From   time.Time
}

type guest struct {
	gorm.Model
	Name    string
	Phone   *string   `json:",omitempty"`
	Stay    guestStay `gorm:"embedded"`
	Photo   []byte
	Papers  json.RawMessage `gorm:"type:jsonb"`
	Wishes  map[string]any  `gorm:"serializer:json"`
	Times   []guestStay     `gorm:"serializer:json"`
	Version int64           `gorm:"not null;default:1" gormlock:"version"`
}

// A struct that JSON does not hold whole is unread in the result of Once, in the first call and in later ones: its Save would empty a column.
func TestOnce_losesNoColumn(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&member{}, &keyHolder{}, &guest{}})
	stand.Must(t, gormlock.MigrateOnce(db))
	phone := "1"
	t.Run("a column that JSON leaves out", func(t *testing.T) {
		t.Parallel()
		savesAll(t, db, false, func() *member { return &member{Name: "ann", Password: "hash"} }, func(m *member) string { return m.Password })
	})
	t.Run("a column that hides itself", func(t *testing.T) {
		t.Parallel()
		savesAll(t, db, false, func() *keyHolder { return &keyHolder{Name: "ann", Token: "secret"} }, func(k *keyHolder) masked { return k.Token })
	})
	t.Run("all columns", func(t *testing.T) {
		t.Parallel()
		savesAll(t, db, true, func() *guest {
			return &guest{Name: "ann", Phone: &phone, Stay: guestStay{3, time.Now().UTC()}, Photo: []byte("png"),
				Papers: json.RawMessage(`{"b": 1,  "a": [1]}`), Wishes: map[string]any{"pillows": 2}, Times: []guestStay{{1, time.Now()}}}
		}, func(g *guest) string { return string(g.Photo) })
	})
	t.Run("zero columns", func(t *testing.T) {
		t.Parallel()
		savesAll(t, db, true, func() *guest { return &guest{Papers: json.RawMessage("{}")} }, func(g *guest) string { return string(g.Photo) })
	})
}

func savesAll[T any, C comparable](t *testing.T, db *gorm.DB, whole bool, fresh func() *T, column func(*T) C) {
	t.Helper()
	type wrapped struct {
		By   *T
		Them []T
		Of   map[string]T
	}
	ways := map[string]func(tx *gorm.DB, key string) (*T, error){
		"pointer": func(tx *gorm.DB, key string) (*T, error) {
			return gormlock.Once(tx, key, func(tx *gorm.DB) (*T, error) { row := fresh(); return row, tx.Create(row).Error })
		},
		"value": func(tx *gorm.DB, key string) (*T, error) {
			row, err := gormlock.Once(tx, key, func(tx *gorm.DB) (T, error) { row := fresh(); return *row, tx.Create(row).Error })
			return &row, err
		},
		"in a pointer": func(tx *gorm.DB, key string) (*T, error) {
			result, err := gormlock.Once(tx, key, func(tx *gorm.DB) (wrapped, error) { row := fresh(); return wrapped{By: row}, tx.Create(row).Error })
			return result.By, err
		},
		"in a slice": func(tx *gorm.DB, key string) (*T, error) {
			result, err := gormlock.Once(tx, key, func(tx *gorm.DB) (wrapped, error) {
				rows := []T{*fresh()}
				err := tx.Create(&rows).Error
				return wrapped{Them: rows}, err
			})
			if err != nil {
				return nil, err
			}
			return &result.Them[0], nil
		},
		"in a map": func(tx *gorm.DB, key string) (*T, error) {
			result, err := gormlock.Once(tx, key, func(tx *gorm.DB) (*wrapped, error) {
				row := fresh()
				err := tx.Create(row).Error
				return &wrapped{Of: map[string]T{"x": *row}}, err
			})
			if err != nil {
				return nil, err
			}
			row := result.Of["x"]
			return &row, nil
		},
	}
	ways["in an option"] = func(tx *gorm.DB, key string) (*T, error) {
		result, err := gormlock.Once(tx, key, func(tx *gorm.DB) (option[*T], error) { row := fresh(); return option[*T]{row}, tx.Create(row).Error })
		return result.value, err
	}
	for way, call := range ways {
		key := t.Name() + way
		for _, again := range []bool{false, true} {
			var row *T
			stand.Must(t, db.Transaction(func(tx *gorm.DB) (err error) {
				row, err = call(tx, key)
				return err
			}))
			if way == "value" && !again {
				continue // it is unread until it is read again
			}
			err := db.Save(row).Error
			if whole {
				stand.Must(t, err)
				break // the key holds the version of then
			}
			stand.MustBeUnread(t, err)
		}
	}
	var rows []T
	stand.MustDo(t, db.Find(&rows))
	for i := range rows {
		if row := fresh(); !whole && column(&rows[i]) != column(row) {
			t.Errorf("%v", rows[i])
		}
	}
}

// A result that was stored before its type got a field has no value for it.
func TestOnce_ofAnEarlierType(t *testing.T) {
	t.Parallel()
	type client struct {
		ID      int64
		Name    string
		Phone   string `gorm:"not null;default:unknown"`
		Version int64  `gorm:"not null;default:1" gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&client{}})
	stand.Must(t, gormlock.MigrateOnce(db))
	stand.MustDo(t, db.Exec("INSERT INTO clients (id, name) VALUES (1, 'ann')"))
	for key, stored := range map[string]string{"now": `{"id":1,"name":"ann","phone":"unknown","version":1}`, "earlier": `{"id":1,"name":"ann","version":1}`} {
		stand.MustDo(t, db.Exec("INSERT INTO gormlock_once (key, result) VALUES (?, ?)", key, stored))
		var row *client
		stand.Must(t, db.Transaction(func(tx *gorm.DB) (err error) {
			row, err = gormlock.Once(tx, key, func(*gorm.DB) (*client, error) { return nil, nil })
			return err
		}))
		if key == "earlier" {
			stand.MustBeUnread(t, db.Save(row).Error)
		} else {
			stand.MustDo(t, db.Model(row).Where("true").Update("name", "ann"))
			stand.MustDo(t, db.Exec("UPDATE clients SET version = 1"))
		}
	}
	stand.Equal(t, "stored", stand.Row[client](t, db, 1).Phone, "unknown")
}

// Base brings the version of who embeds it.
type Base struct {
	ID      int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// The same in a program that has not used the model yet, whose version is in an embedded struct.
func TestOnce_ofAnEarlierTypeThatWasNotUsed(t *testing.T) {
	t.Parallel()
	type caller struct {
		Base
		Name  string
		Phone string `gorm:"not null;default:unknown"`
	}
	type visitor struct {
		Own   Base `gorm:"embedded"`
		Name  string
		Phone string `gorm:"not null;default:unknown"`
	}
	db := stand.Open(t)
	stand.Must(t, gormlock.MigrateOnce(db))
	for _, table := range []string{"callers", "visitors"} {
		stand.MustDo(t, db.Exec("CREATE TABLE "+table+" (id bigint PRIMARY KEY, name text, phone text NOT NULL DEFAULT 'unknown', version bigint NOT NULL DEFAULT 1)"))
		stand.MustDo(t, db.Exec("INSERT INTO "+table+" (id, name) VALUES (1, 'ann')"))
	}
	stand.MustDo(t, db.Exec(`INSERT INTO gormlock_once (key, result) VALUES ('caller', '{"ID":1,"Version":1,"Name":"ann"}'), ('visitor', '{"Own":{"ID":1,"Version":1},"Name":"ann"}')`))
	var who *caller
	var guest *visitor
	stand.Must(t, db.Transaction(func(tx *gorm.DB) (err error) {
		if who, err = gormlock.Once(tx, "caller", func(*gorm.DB) (*caller, error) { return nil, nil }); err == nil {
			guest, err = gormlock.Once(tx, "visitor", func(*gorm.DB) (*visitor, error) { return nil, nil })
		}
		return err
	}))
	stand.MustBeUnread(t, db.Save(who).Error)
	stand.MustBeUnread(t, db.Save(guest).Error)
}

// leaf points back to its tree, which JSON leaves out and its own UnmarshalJSON sets again.
type tree struct {
	ID      int64
	Leaves  []*leaf
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type leaf struct {
	ID, TreeID int64
	Tree       *tree `json:"-"`
}

func (t *tree) UnmarshalJSON(text []byte) error {
	type plain tree
	if err := json.Unmarshal(text, (*plain)(t)); err != nil {
		return err
	}
	for _, leaf := range t.Leaves {
		leaf.Tree = t
	}
	return nil
}

func TestOnce_resultInACircle(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&tree{}, &leaf{}})
	stand.Must(t, gormlock.MigrateOnce(db))
	for range 2 {
		var got *tree
		stand.Must(t, db.Transaction(func(tx *gorm.DB) (err error) {
			got, err = gormlock.Once(tx, "tree", func(tx *gorm.DB) (*tree, error) {
				made := &tree{Leaves: []*leaf{{}}}
				err := tx.Create(made).Error
				made.Leaves[0].Tree = made
				return made, err
			})
			return err
		}))
		stand.Equal(t, "version", got.Version, 1)
	}
}
