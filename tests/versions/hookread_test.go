package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// hooker does in its hooks what Do says.
type hooker struct {
	ID      int64
	N       int
	Version int64 `gorm:"not null;default:1" gormlock:"version"`

	Do func(tx *gorm.DB, h *hooker) error `gorm:"-"`
}

func (h *hooker) before(tx *gorm.DB) error {
	do := h.Do
	if do == nil {
		return nil
	}
	h.Do = nil
	defer func() { h.Do = do }()
	return do(tx.Session(&gorm.Session{NewDB: true}), h)
}

func (h *hooker) BeforeSave(tx *gorm.DB) error   { return h.before(tx) }
func (h *hooker) BeforeDelete(tx *gorm.DB) error { return h.before(tx) }

// A hook that reads the row into the struct does not make what the caller read before any fresher.
func TestHook_readsItsRow(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&hooker{}}, func(t *testing.T, db *gorm.DB) {
		for does, do := range map[string]func(tx *gorm.DB, h *hooker) error{
			"LockRow":     func(tx *gorm.DB, h *hooker) error { return gormlock.LockRow(tx, h) },
			"First":       func(tx *gorm.DB, h *hooker) error { return tx.First(h).Error },
			"the version": func(tx *gorm.DB, h *hooker) error { return tx.Select("version").First(h).Error },
			"adds one":    func(_ *gorm.DB, h *hooker) error { h.Version++; return nil },
			"writes": func(tx *gorm.DB, h *hooker) error {
				return tx.Model(h).Update("n", gorm.Expr("n + ?", 0)).Error
			},
		} {
			if does == "LockRow" && db.Name() == "sqlite" {
				continue
			}
			for name, write := range map[string]func(tx *gorm.DB, h *hooker) error{
				"Update":  func(tx *gorm.DB, h *hooker) error { return tx.Model(h).Update("n", 6).Error },
				"Updates": func(tx *gorm.DB, h *hooker) error { h.N = 6; return tx.Updates(h).Error },
				"Save":    func(tx *gorm.DB, h *hooker) error { h.N = 6; return tx.Save(h).Error },
				"slice":   func(tx *gorm.DB, h *hooker) error { h.N = 6; return tx.Save([]*hooker{h}).Error },
				"Delete":  func(tx *gorm.DB, h *hooker) error { return tx.Delete(h).Error },
				"upsert": func(tx *gorm.DB, h *hooker) error {
					return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(h).Error
				},
			} {
				h := stand.Made(t, db, hooker{N: 1})
				h.Do = do
				stale := h
				stand.MustDo(t, db.Model(&hooker{}).Where("id = ?", h.ID).UpdateColumn("n", 1000))
				if err := write(db, &stale); !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Errorf("%s, %s, stale: %v", does, name, err)
				}
				stand.Equal(t, does+", "+name+", stale", stand.Row[hooker](t, db, h.ID).N, 1000)
				unread := hooker{ID: h.ID, Do: do}
				if err := write(db, &unread); err == nil && does != "adds one" && name != "Delete" && name != "upsert" {
					stand.Equal(t, does+", "+name+", unread", stand.Row[hooker](t, db, h.ID).N, 1000)
				}
				fresh := stand.Made(t, db, hooker{N: 1})
				fresh.Do = do
				if err := write(db, &fresh); err != nil && (does != "writes" || name == "Update") {
					t.Errorf("%s, %s: %v", does, name, err)
				}
			}
		}
	})
}
