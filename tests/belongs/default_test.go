package belongs_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	house struct {
		ID      int64
		Rooms   []*room `gorm:"foreignKey:HouseID"`
		Tags    []*room `gorm:"many2many:house_tags"`
		Version int64   `gorm:"not null;default:1" gormlock:"version"`
	}
	room struct {
		ID       int64
		Level    int64  `gorm:"default:5"`
		Open     bool   `gorm:"default:true"`
		Note     string `gorm:"default:none"`
		Computed int64  `gorm:"default:(1+1)"`
		MadeAt   *time.Time
		HouseID  *int64
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	cupboard struct {
		ID      int64
		A       int64
		RoomID  *int64
		Room    *room
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// A struct that was read, and is saved or linked with another one, keeps the zeros that its row holds, and its next Save does not write the
// defaults of a new row. A new struct beside it gets them.
func TestDefault_ofAStructThatWasRead(t *testing.T) {
	t.Parallel()
	full := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{FullSaveAssociations: true}) }
	for name, link := range map[string]func(db *gorm.DB, h *house, r, fresh *room) error{
		"Append": func(db *gorm.DB, h *house, r, fresh *room) error {
			return db.Model(h).Association("Rooms").Append(r, fresh)
		},
		"Replace": func(db *gorm.DB, h *house, r, fresh *room) error {
			return db.Model(h).Association("Rooms").Replace(r, fresh)
		},
		"Append tags": func(db *gorm.DB, h *house, r, fresh *room) error {
			return db.Model(h).Association("Tags").Append(r, fresh)
		},
		"Save": func(db *gorm.DB, h *house, r, fresh *room) error {
			h.Rooms = []*room{r, fresh}
			return db.Save(h).Error
		},
		"Save of tags": func(db *gorm.DB, h *house, r, fresh *room) error {
			h.Tags = []*room{fresh, r}
			return db.Save(h).Error
		},
		"full": func(db *gorm.DB, h *house, r, fresh *room) error {
			h.Rooms = []*room{r, fresh}
			return full(db).Save(h).Error
		},
		"full of tags": func(db *gorm.DB, h *house, r, fresh *room) error {
			h.Tags = []*room{r, fresh}
			return full(db).Save(h).Error
		},
		"belongs to, Create": func(db *gorm.DB, _ *house, r, fresh *room) error {
			return db.Create([]*cupboard{{Room: r}, {Room: fresh}}).Error
		},
		"belongs to, Save": func(db *gorm.DB, _ *house, r, fresh *room) error {
			c := cupboard{Room: r}
			stand.Must(t, db.Create(&c).Error)
			c.A = 2
			stand.Must(t, db.Save(&c).Error)
			stand.Must(t, db.Model(&c).Update("a", 3).Error)
			return db.Create(fresh).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnEach(t, []any{&house{}, &room{}, &cupboard{}}, func(t *testing.T, db *gorm.DB) {
				h := stand.Made(t, db, house{})
				stand.Must(t, db.Exec("INSERT INTO rooms (id, level, open, note, computed) VALUES (1000, 0, false, '', 0)").Error)
				r, fresh := stand.Row[room](t, db, 1000), room{}
				stand.Must(t, link(db, &h, &r, &fresh))
				is := func(what string, got room, level int64, open bool, note string) {
					t.Helper()
					if got.Level != level || got.Open != open || got.Note != note {
						t.Errorf("%s: %+v", what, got)
					}
				}
				is("the struct", r, 0, false, "")
				is("the new struct", fresh, 5, true, "none")
				is("the new row", stand.Row[room](t, db, fresh.ID), 5, true, "none")
				r.MadeAt = &[]time.Time{time.Unix(1, 0)}[0]
				stand.Must(t, db.Save(&r).Error)
				is("the row", stand.Row[room](t, db, r.ID), 0, false, "")
			})
		})
	}
}
