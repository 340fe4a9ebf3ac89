package locks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// TestG17_DryRun: nothing of the lock, nor of the statement, reaches the server.
func TestG17_DryRun(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, s *lookout) {
		w, key := s.seed(t), pgtest.Key(t)
		dry := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{DryRun: true}) }
		runs := map[string]func(db *gorm.DB) *gorm.DB{
			"create": func(db *gorm.DB) *gorm.DB { return db.Create(&widget{}) },
			"update": func(db *gorm.DB) *gorm.DB { return db.Model(w).Update("n", 1) },
			"delete": func(db *gorm.DB) *gorm.DB { return db.Delete(&widget{}, 1) },
			"save":   func(db *gorm.DB) *gorm.DB { return db.Save(&widget{ID: 1}) },
			"first":  func(db *gorm.DB) *gorm.DB { return db.First(&widget{}, 1) },
			"find":   func(db *gorm.DB) *gorm.DB { return db.Find(&[]widget{}) },
			"count":  func(db *gorm.DB) *gorm.DB { var n int64; return db.Model(&widget{}).Count(&n) },
			"exec":   func(db *gorm.DB) *gorm.DB { return db.Exec("update widgets set n = 1") },
		}
		for name, run := range runs {
			for door, lock := range map[string]func(db *gorm.DB) *gorm.DB{
				"Scopes":  func(db *gorm.DB) *gorm.DB { return db.Scopes(gormlock.WithXactLock(key)) },
				"Clauses": func(db *gorm.DB) *gorm.DB { return db.Clauses(gormlock.XactLock(key, gormlock.Try())) },
			} {
				s.begin(key)
				with := run(lock(dry(s.db)))
				within := s.db.Transaction(func(tx *gorm.DB) error { return run(lock(dry(tx))).Error })
				executed, _ := s.end()
				if with.Error != nil || within != nil {
					t.Errorf("%s %s: %v, in a transaction %v", door, name, with.Error, within)
				}
				if countOnWidgets(executed)+countLocks(executed) > 0 {
					t.Errorf("%s %s: executed %q", door, name, executed)
				}
				without := run(dry(s.db))
				if got, want := with.Statement.SQL.String(), without.Statement.SQL.String(); got != want || got == "" {
					t.Errorf("%s %s: the text became %q, without a lock it is %q", door, name, got, want)
				}
			}
			s.begin(key)
			text := s.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return run(tx.Scopes(gormlock.WithXactLock(key))) })
			if plain := s.db.ToSQL(run); text != plain || text == "" {
				t.Errorf("ToSQL %s: %q, without a lock %q", name, text, plain)
			}
			if executed, _ := s.end(); len(executed) > 0 {
				t.Errorf("ToSQL %s: executed %q", name, executed)
			}
		}
		s.begin(key)
		if err := gormlock.AcquireXactLock(dry(s.db), []lockkey.Key{key}); err != nil {
			t.Error(err)
		}
		if executed, _ := s.end(); len(executed) > 0 {
			t.Errorf("AcquireXactLock: executed %q", executed)
		}
		if pgtest.Held(t, key) {
			t.Error("held")
		}
	})
}

// TestG17_SubQuery: a lock on what is no statement of its own would be dropped in silence. Nothing is executed.
func TestG17_SubQuery(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	s.seed(t)
	key, other := pgtest.Key(t), pgtest.Key(t)
	locked := func(db *gorm.DB) *gorm.DB { return db.Model(&widget{}).Select("id").Scopes(gormlock.WithXactLock(key)) }
	for name, run := range map[string]func(db *gorm.DB) error{
		"where": func(db *gorm.DB) error { return db.Where("id in (?)", locked(s.db)).Find(&[]widget{}).Error },
		"where, clause": func(db *gorm.DB) error {
			return db.Where("id in (?)", s.db.Model(&widget{}).Select("id").Clauses(gormlock.XactLock(key))).Find(&[]widget{}).Error
		},
		"where, of the transaction": func(db *gorm.DB) error { return db.Where("id in (?)", locked(db)).Find(&[]widget{}).Error },
		"where, generic": func(db *gorm.DB) error {
			return db.Where("id in (?)", gorm.G[widget](s.db, gormlock.XactLock(key)).Select("id")).Find(&[]widget{}).Error
		},
		"where of a generic": func(db *gorm.DB) error {
			_, err := gorm.G[widget](db).Where("id in (?)", locked(s.db)).Find(t.Context())
			return err
		},
		"table": func(db *gorm.DB) error {
			return db.Table("(?) as widgets", locked(s.db)).Find(&[]map[string]any{}).Error
		},
		"join": func(db *gorm.DB) error { return db.Joins("join (?) q on true", locked(s.db)).Find(&[]widget{}).Error },
		"count": func(db *gorm.DB) error {
			var n int64
			return db.Model(&widget{}).Where("id in (?)", locked(s.db)).Count(&n).Error
		},
		"update": func(db *gorm.DB) error {
			return db.Model(&widget{}).Where("id in (?)", locked(s.db)).Update("n", 9).Error
		},
		"update to": func(db *gorm.DB) error { return db.Model(&widget{}).Where("true").Update("n", locked(s.db)).Error },
		"delete":    func(db *gorm.DB) error { return db.Where("id in (?)", locked(s.db)).Delete(&widget{}).Error },
		"raw": func(db *gorm.DB) error {
			return db.Raw("select * from widgets where id in (?)", locked(s.db)).Scan(&[]widget{}).Error
		},
		"exec": func(db *gorm.DB) error {
			return db.Exec("update widgets set n = 9 where id in (?)", locked(s.db)).Error
		},
		"row": func(db *gorm.DB) error {
			var n int
			return db.Model(&widget{}).Select("n").Where("id in (?)", locked(s.db)).Row().Scan(&n)
		},
		"group of conditions": func(db *gorm.DB) error {
			return db.Where(s.db.Where("id > 0").Scopes(gormlock.WithXactLock(key))).Find(&[]widget{}).Error
		},
		"group of conditions, clause": func(db *gorm.DB) error {
			return db.Where(s.db.Where("id > 0").Clauses(gormlock.XactLock(key))).Find(&[]widget{}).Error
		},
		"joined association": func(db *gorm.DB) error {
			return db.Joins("Maker", s.db.Where("true").Clauses(gormlock.XactLock(key))).Find(&[]widget{}).Error
		},
		"joined association, scope": func(db *gorm.DB) error {
			return db.InnerJoins("Maker", s.db.Scopes(gormlock.WithXactLock(key)).Where("true")).Find(&[]widget{}).Error
		},
		"group under OR": func(db *gorm.DB) error {
			return db.Where("id < 0").Or(s.db.Where("id > 0").Clauses(gormlock.XactLock(key))).Delete(&widget{}).Error
		},
		"group with a lock that the statement does not take": func(db *gorm.DB) error {
			return db.Scopes(gormlock.WithXactLock(other)).Where(s.db.Where("id > 0").Clauses(gormlock.XactLock(key))).Find(&[]widget{}).Error
		},
		"two levels": func(db *gorm.DB) error {
			return db.Where("id in (?)", s.db.Model(&widget{}).Select("id").Where("id in (?)", locked(s.db))).Find(&[]widget{}).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.begin(key)
			var inside error
			err := s.db.Transaction(func(tx *gorm.DB) error {
				inside = run(tx)
				return nil
			})
			executed, _ := s.end()
			if !errors.Is(inside, gormlock.ErrSubQuery) {
				t.Errorf("err = %v (%v), executed %q", inside, err, executed)
			}
			if countOnWidgets(executed) > 0 {
				t.Errorf("executed %q", executed)
			}
		})
	}
	t.Run("the statement around it carries the lock", func(t *testing.T) {
		err := s.db.Transaction(func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithXactLock(key)).Where("id in (?)", s.db.Model(&widget{}).Select("id")).Find(&[]widget{}).Error
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestGroupOfALockedSession: a group of conditions made from the session that carries the lock is no second lock.
func TestGroupOfALockedSession(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	s.seed(t)
	key := pgtest.Key(t)
	err := s.db.Transaction(func(tx *gorm.DB) error {
		locked := tx.Clauses(gormlock.XactLock(key)).Session(&gorm.Session{})
		var found []widget
		err := locked.Where(locked.Where("id > 0").Or("id < 0")).Find(&found).Error
		if len(found) == 0 || !pgtest.Held(t, key) {
			t.Errorf("found %d, held %v", len(found), pgtest.Held(t, key))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
