package belongs_test

import (
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type sharedPost struct {
	ID       int64
	AuthorID *int64
	Author   *sharedAuthor
	MadeID   *string
	Made     *sharedMade
	Tags     []*sharedAuthor `gorm:"many2many:shared_post_tags"`
	Mades    []*sharedMade   `gorm:"many2many:shared_post_mades"`
	Notes    []*sharedNote   `gorm:"foreignKey:PostID"`
	Version  int64           `gorm:"not null;default:1" gormlock:"version"`
}

type sharedAuthor struct {
	ID      int64
	Email   string `gorm:"unique"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// sharedMade gets its key from a hook.
type sharedMade struct {
	ID      string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (m *sharedMade) BeforeCreate(tx *gorm.DB) error {
	if m.ID == "" {
		return tx.Session(&gorm.Session{NewDB: true}).Raw("SELECT gen_random_uuid()").Scan(&m.ID).Error
	}
	return nil
}

type sharedNote struct {
	ID, PostID int64
	Version    int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A new struct that several parents point to is stored once, and each of them is linked to it.
func TestShared_newStruct(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&sharedPost{}, &sharedAuthor{}, &sharedMade{}, &sharedNote{}})
	posts := func() []*sharedPost {
		author, made := &sharedAuthor{Email: "new"}, &sharedMade{}
		return []*sharedPost{
			{Author: author, Made: made, Tags: []*sharedAuthor{author, {Email: "other"}}, Mades: []*sharedMade{made}},
			{Author: author, Made: made, Tags: []*sharedAuthor{author, author}, Mades: []*sharedMade{made, made}},
		}
	}
	for name, write := range map[string]func(db *gorm.DB) error{
		"create": func(db *gorm.DB) error { return db.Create(posts()).Error },
		"create, fully": func(db *gorm.DB) error {
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Create(posts()).Error
		},
		"in batches": func(db *gorm.DB) error { return db.CreateInBatches(posts(), 1).Error },
		"save": func(db *gorm.DB) error {
			stored, given := []*sharedPost{{}, {}}, posts()
			stand.MustDo(t, db.Create(stored))
			for i := range stored {
				given[i].ID, given[i].Version = stored[i].ID, stored[i].Version
			}
			return db.Save(given).Error
		},
		"append": func(db *gorm.DB) error {
			stored := []*sharedPost{{}, {}}
			stand.MustDo(t, db.Create(stored))
			author := &sharedAuthor{Email: "new"}
			stand.Must(t, db.Model(stored[0]).Association("Tags").Append(author, author, &sharedAuthor{Email: "other"}))
			return db.Model(stored[1]).Association("Tags").Append(author)
		},
	} {
		stand.MustDo(t, db.Exec("TRUNCATE shared_posts, shared_authors, shared_mades, shared_notes, shared_post_tags, shared_post_mades"))
		stand.Must(t, write(db))
		var got string
		stand.MustDo(t, db.Raw(`SELECT (SELECT count(*) FROM shared_authors) || ' ' || (SELECT count(*) FROM shared_post_tags) ||
			' ' || (SELECT count(DISTINCT author_id) FROM shared_posts) || ' ' || (SELECT count(*) FROM shared_mades) || ' ' || (SELECT count(*) FROM shared_post_mades)`).Scan(&got))
		want := "2 3 1 1 2"
		if name == "append" {
			want = "2 3 0 0 0"
		}
		stand.Equal(t, name, got, want)
	}

	note := &sharedNote{}
	if err := db.Create([]*sharedPost{{Notes: []*sharedNote{note}}, {Notes: []*sharedNote{note}}}).Error; err == nil {
		t.Error("a note has two posts")
	}
	one := &sharedPost{Notes: []*sharedNote{note, note}}
	stand.MustDo(t, db.Create(one))
	stand.Equal(t, "notes", db.Model(one).Association("Notes").Count(), 1)
	stand.Equal(t, "note", fmt.Sprint(*note), fmt.Sprint(sharedNote{note.ID, one.ID, 1}))
}
