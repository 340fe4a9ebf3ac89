package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type againUser struct {
	ID        int64
	Name      string
	CompanyID *int64
	Company   *againCompany
	Card      againCard   `gorm:"foreignKey:UserID"`
	Lines     []againLine `gorm:"foreignKey:UserID"`
	Tags      []*againTag `gorm:"many2many:again_user_tags"`
	Version   int64       `gorm:"not null;default:1" gormlock:"version"`
}

// againForm is the same row in a struct without a version.
type againForm struct {
	ID    int64
	Name  string
	Lines []againLine `gorm:"foreignKey:UserID"`
}

func (againForm) TableName() string { return "again_users" }

// againSeen is a row of a view, which brings the company along.
type againSeen struct {
	ID        int64
	CompanyID *int64
	Company   *againCompany
}

func (againSeen) TableName() string { return "again_view" }

type againCompany struct {
	ID      int64
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type againCard struct {
	ID, UserID int64
	Text       string
	Version    int64 `gorm:"not null;default:1" gormlock:"version"`
}

type againLine struct {
	ID, UserID int64
	Text       string
	Version    int64 `gorm:"not null;default:1" gormlock:"version"`
}

type againTag struct {
	ID      int64
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A parent that is read again in a transaction that is rolled back counts as not read. What it holds from before was not read again, and keeps its
// versions, so a save of the parent sees what rivals have done to it.
func TestRollback_ofAParentThatIsReadAgain(t *testing.T) {
	t.Parallel()
	models := []any{&againCompany{}, &againTag{}, &againUser{}, &againCard{}, &againLine{}}
	db := stand.Versioned(t, models)
	stand.MustDo(t, db.Exec("CREATE VIEW again_plain AS SELECT * FROM again_users"))
	reads := map[string]func(tx *gorm.DB, u *againUser) error{
		"LockRow": func(tx *gorm.DB, u *againUser) error { return gormlock.LockRow(tx, u) },
		"First":   func(tx *gorm.DB, u *againUser) error { return tx.First(u, u.ID).Error },
		"Take with lock": func(tx *gorm.DB, u *againUser) error {
			return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Take(u).Error
		},
		"Table": func(tx *gorm.DB, u *againUser) error {
			return tx.Table("again_users AS u").Where("u.id = ?", u.ID).Take(u).Error
		},
		"a view": func(tx *gorm.DB, u *againUser) error {
			return tx.Table("again_plain").Where("id = ?", u.ID).Take(u).Error
		},
		"Raw": func(tx *gorm.DB, u *againUser) error {
			return tx.Raw("SELECT * FROM again_users WHERE id = ?", u.ID).First(u).Error
		},
		"one Preload": func(tx *gorm.DB, u *againUser) error { return tx.Preload("Tags").First(u, u.ID).Error },
		"one join":    func(tx *gorm.DB, u *againUser) error { return tx.Joins("Company").First(u, u.ID).Error },
	}
	ends := map[string]func(db *gorm.DB, read func(tx *gorm.DB) error){
		"rolled back": func(db *gorm.DB, read func(tx *gorm.DB) error) { _ = db.Transaction(read) },
		"nested": func(db *gorm.DB, read func(tx *gorm.DB) error) {
			_ = db.Transaction(func(tx *gorm.DB) error { return errors.Join(tx.Transaction(read), errUndo) })
		},
		"Attempts": func(db *gorm.DB, read func(tx *gorm.DB) error) {
			_ = gormlock.Transaction(db, func(tx *gorm.DB) error { return errors.Join(read(tx), gormlock.ErrStale) }, gormlock.Attempts(2))
		},
	}
	stand.Beside(t, reads, func(t *testing.T, read func(*gorm.DB, *againUser) error) {
		for end, run := range ends {
			u := againUser{Company: &againCompany{}, Card: againCard{Text: "c"}, Lines: []againLine{{}, {}}, Tags: []*againTag{{}}}
			stand.MustDo(t, db.Create(&u))
			id := u.ID
			u = againUser{}
			stand.MustDo(t, db.Preload("Company").Preload("Card").Preload("Lines").Preload("Tags").First(&u, id))
			run(db, func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Create(&againCompany{}))
				return errors.Join(read(tx, &u), errUndo)
			})
			stand.Equal(t, end+": the card", u.Card.Version, 1)
			for i := range u.Lines {
				u.Lines[i].Text = end
				stand.MustDo(t, db.Save(&u.Lines[i]))
			}
			stand.MustDo(t, db.Exec("DELETE FROM again_lines WHERE id = ?", u.Lines[1].ID)) // a rival
			stand.MustDo(t, db.First(&u, id))
			stand.MustStale(t, db.Save(&u).Error)
		}
	})
}

// What such a read brings along is unread after a rollback, wherever it is.
func TestRollback_ofWhatAParentIsReadAgainWith(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&againCompany{}, &againTag{}, &againUser{}, &againCard{}, &againLine{}})
	u := againUser{Company: &againCompany{}, Card: againCard{Text: "c"}, Lines: []againLine{{}, {}}, Tags: []*againTag{{}}}
	stand.MustDo(t, db.Create(&u))
	id := u.ID
	for name, read := range map[string]func(tx *gorm.DB, u *againUser) error{
		"Preload": func(tx *gorm.DB, u *againUser) error {
			return tx.Preload("Company").Preload("Card").Preload("Lines").Preload("Tags").First(u, id).Error
		},
		"all": func(tx *gorm.DB, u *againUser) error {
			return tx.Preload("Card").Preload("Lines").Preload("Tags").Joins("Company").First(u, id).Error
		},
	} {
		u = againUser{}
		stand.MustDo(t, db.Preload("Company").Preload("Card").Preload("Lines").Preload("Tags").First(&u, id))
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Create(&againCompany{}))
			return errors.Join(read(tx, &u), errUndo)
		})
		stand.Equal(t, name+": the company", u.Company.Version, stand.Unread)
		stand.Equal(t, name+": the card", u.Card.Version, stand.Unread)
		stand.Equal(t, name+": a line", u.Lines[0].Version, stand.Unread)
		stand.Equal(t, name+": a tag", u.Tags[0].Version, stand.Unread)
	}
	stand.MustDo(t, db.Exec(`CREATE VIEW again_view AS SELECT u.*, c.id AS "Company__id", c.name AS "Company__name", c.version AS "Company__version"
		FROM again_users u JOIN again_companies c ON c.id = u.company_id`))
	seen := againSeen{}
	stand.MustDo(t, db.First(&seen, id))
	stand.Equal(t, "a view: the company", seen.Company.Version, 1)
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Create(&againCompany{}))
		return errors.Join(tx.First(&seen, id).Error, errUndo)
	})
	stand.Equal(t, "a view that is read again: the company", seen.Company.Version, stand.Unread)
	var form againForm
	stand.MustDo(t, db.Preload("Lines").First(&form, id))
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Create(&againCompany{}))
		return errors.Join(tx.First(&form, id).Error, errUndo)
	})
	stand.Equal(t, "a form that is read again: a line", form.Lines[0].Version, 1)
}
