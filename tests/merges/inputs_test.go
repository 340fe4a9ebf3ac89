package merges_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// entries are fields that are no columns, of which the hook makes some.
type entries struct {
	Password string `gorm:"-"`
	pin      string
	raw      []byte
}

type login struct {
	ID int64
	entries
	Entered struct {
		Nick string `gorm:"-"`
		Note string
	} `gorm:"embedded"`
	Name    string
	Hash    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (m *login) BeforeSave(*gorm.DB) error {
	for _, entered := range []string{m.Password, m.pin, string(m.raw), m.Entered.Nick} {
		if entered != "" {
			m.Hash = "hash of " + entered
		}
	}
	return nil
}

// unhooked has no hook that could make a column of anything.
type unhooked login

func (*unhooked) TableName() string { return "logins" }

// What the caller changed in a field that is no column is written if a hook makes a column of it.
func TestSaveMerged_inputsOfHooks(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&login{}}, func(t *testing.T, db *gorm.DB) {
		for name, enter := range map[string]func(m *login){
			"exported":   func(m *login) { m.Password = "x" },
			"unexported": func(m *login) { m.pin = "x" },
			"bytes":      func(m *login) { m.raw = []byte("x") },
			"embedded":   func(m *login) { m.Entered.Nick = "x" },
		} {
			base := stand.Made(t, db, login{Name: "n", Hash: "old"})
			mine := base
			enter(&mine)
			stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
			row := stand.Row[login](t, db, mine.ID)
			stand.Equal(t, name, row.Hash, "hash of x")
			stand.Equal(t, name, mine.Version, row.Version)

			base = row
			mine = base
			enter(&mine)
			mine.Name = "mine"
			stand.MustDo(t, db.Model(&login{}).Where("id = ?", base.ID).UpdateColumn("hash", "rival"))
			var conflict *gormlock.ConflictError
			if err := gormlock.SaveMerged(db, &mine, &base); !errors.As(err, &conflict) || conflict.Columns[0].Column != "hash" {
				t.Errorf("%s, and a rival: %v", name, err)
			}
			row = stand.Row[login](t, db, mine.ID)
			stand.Equal(t, name+", and a rival", row.Hash+row.Name, "rivaln")
			stand.Equal(t, name+", and a rival: mine", mine.Hash+mine.Name, "hash of xmine")
			if err := db.Transaction(func(tx *gorm.DB) error { return errors.Join(gormlock.SaveMerged(tx, &mine, &base), nil) }); !errors.Is(err, gormlock.ErrStale) {
				t.Errorf("%s, and a rival, in a transaction: %v", name, err)
			}
		}
	})
}

// Nothing is written where no hook could make a column of it.
func TestSaveMerged_inputsOfNobody(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&login{}})
	made := stand.Made(t, db, login{Name: "n"})
	mine, base := unhooked(made), unhooked(made)
	mine.Password = "x"
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	hooked := made
	hooked.Password = "x"
	stand.Must(t, gormlock.SaveMerged(db.Session(&gorm.Session{SkipHooks: true}), &hooked, &made))
	stand.Equal(t, "version", stand.Row[login](t, db, made.ID).Version, made.Version)
}

// plainLogin has no version and no time of its update.
type plainLogin struct {
	ID     int64
	Name   string
	Hash   string
	Secret string `gorm:"-"`
}

func (m *plainLogin) BeforeUpdate(*gorm.DB) error {
	if m.Secret != "" && m.Secret != "weak" {
		m.Hash = "hash of " + m.Secret
	}
	return nil
}

func TestSaveMerged_inputsWithoutVersion(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&plainLogin{}}, func(t *testing.T, db *gorm.DB) {
		for secret, want := range map[string]string{"weak": "", "strong": "hash of strong"} {
			base := stand.Made(t, db, plainLogin{Name: "n"})
			mine := base
			mine.Secret = secret
			stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
			stand.Equal(t, secret, stand.Row[plainLogin](t, db, base.ID).Hash, want)
		}
	})
}
