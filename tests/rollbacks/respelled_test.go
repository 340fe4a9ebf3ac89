package rollbacks_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Spelled is a row whose key the server knows in several spellings.
type Spelled struct {
	Day     time.Time `gorm:"type:date;primaryKey"`
	At      time.Time `gorm:"type:timestamptz;primaryKey"`
	Tenant  string    `gorm:"type:uuid;primaryKey"`
	No      string    `gorm:"type:numeric;primaryKey"`
	Code    string    `gorm:"type:char(6);primaryKey"`
	Net     string    `gorm:"type:inet;primaryKey"`
	Seat    int64     `gorm:"primaryKey;autoIncrement:false"`
	Guest   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// TestRespelled: the program spells the key of a struct in another way behind a write. A rollback takes its version back, or makes it unread, and the
// row of a rival stays.
func TestRespelled(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("x", 5*3600)
	changes := map[string]func(s *Spelled){
		"none":                     func(*Spelled) {},
		"day":                      func(s *Spelled) { s.Day = s.Day.In(zone) },
		"hour":                     func(s *Spelled) { s.Day = s.Day.Add(3 * time.Hour) },
		"at":                       func(s *Spelled) { s.At = s.At.In(zone) },
		"capital":                  func(s *Spelled) { s.Tenant = strings.ToUpper(s.Tenant) },
		"braces":                   func(s *Spelled) { s.Tenant = "{" + strings.ReplaceAll(s.Tenant, "-", "") + "}" },
		"scale":                    func(s *Spelled) { s.No = "01.50" },
		"exponent":                 func(s *Spelled) { s.No = "15e-1" },
		"spaces":                   func(s *Spelled) { s.Code = strings.TrimSpace(s.Code) },
		"mask":                     func(s *Spelled) { s.Net = "10.0.0.1/32" },
		"mask, and another column": func(s *Spelled) { s.Net, s.Guest = "10.0.0.1/32", "mine" },
		"all": func(s *Spelled) {
			s.Day, s.Tenant, s.No, s.Code = s.Day.In(zone), strings.ToUpper(s.Tenant), "1.500", strings.TrimSpace(s.Code)
		},
	}
	uses := map[string]func(tx *gorm.DB, s *Spelled, change func(s *Spelled)) error{
		"written": func(tx *gorm.DB, s *Spelled, change func(s *Spelled)) error {
			err := tx.Save(s).Error
			change(s)
			return err
		},
		"written twice": func(tx *gorm.DB, s *Spelled, change func(s *Spelled)) error {
			err := tx.Save(s).Error
			change(s)
			return errors.Join(err, tx.Save(s).Error)
		},
		"touched": func(tx *gorm.DB, s *Spelled, change func(s *Spelled)) error {
			err := gormlock.Touch(tx, s)
			change(s)
			return errors.Join(err, gormlock.Touch(tx, s))
		},
		"a list": func(tx *gorm.DB, s *Spelled, change func(s *Spelled)) error {
			err := tx.Save([]*Spelled{s}).Error
			change(s)
			return err
		},
		"a copy": func(tx *gorm.DB, s *Spelled, change func(s *Spelled)) error {
			own := *s
			err := tx.Save(&own).Error
			*s = own
			change(s)
			return errors.Join(err, tx.Save(s).Error)
		},
		"read": func(tx *gorm.DB, s *Spelled, change func(s *Spelled)) error {
			err := errors.Join(tx.Exec("UPDATE spelleds SET version = version + 1").Error, tx.First(s).Error)
			change(s)
			return err
		},
		"read, written": func(tx *gorm.DB, s *Spelled, change func(s *Spelled)) error {
			err := errors.Join(tx.Exec("UPDATE spelleds SET version = version + 1").Error, tx.First(s).Error)
			change(s)
			return errors.Join(err, tx.Save(s).Error)
		},
	}
	hows := map[string]func(db *gorm.DB, body func(tx *gorm.DB) error){
		"rollback": func(db *gorm.DB, body func(tx *gorm.DB) error) { _ = db.Transaction(body) },
		"savepoint": func(db *gorm.DB, body func(tx *gorm.DB) error) {
			_ = db.Transaction(func(tx *gorm.DB) error { _ = tx.Transaction(body); return nil })
		},
		"gormlock.Transaction": func(db *gorm.DB, body func(tx *gorm.DB) error) { _ = gormlock.Transaction(db, body) },
		"aborted": func(db *gorm.DB, body func(tx *gorm.DB) error) {
			_ = db.Transaction(func(tx *gorm.DB) error { return errors.Join(body(tx), tx.Exec("SELECT 1/0").Error) })
		},
	}
	for use, run := range uses {
		t.Run(use, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&Spelled{}})
			for name, change := range changes {
				if use == "a copy" && (name == "hour" || strings.HasPrefix(name, "mask")) {
					continue // nobody knows that it is one
				}
				for how, end := range hows {
					stand.MustDo(t, db.Exec("TRUNCATE spelleds"))
					day := time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)
					stand.MustDo(t, db.Create(&Spelled{
						Day: day, At: day, Tenant: "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", No: "1.5", Code: "ab", Net: "10.0.0.1", Seat: 1, Guest: "old",
					}))
					var s Spelled
					stand.MustDo(t, db.First(&s))
					end(db, func(tx *gorm.DB) error {
						stand.MustDo(t, tx.First(&s))
						stand.Must(t, run(tx, &s, change))
						return errUndo
					})
					left := s
					for range 3 {
						stand.MustDo(t, db.Exec("UPDATE spelleds SET guest = 'rival', version = version + 1"))
						if err := db.Save(&s).Error; !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
							t.Errorf("%s, %s: %+v: %v", name, how, left, err)
						}
					}
					var guest string
					stand.MustDo(t, db.Raw("SELECT guest FROM spelleds").Scan(&guest))
					stand.Equal(t, name+", "+how, guest, "rival")
				}
			}
		})
	}
}

// TestRespelled_byACollation: where a collation takes texts with other letters than ASCII has for one, the version of a key that the program has
// spelled otherwise is not known after a rollback. A struct that the program has not touched keeps its own.
func TestRespelled_byACollation(t *testing.T) {
	t.Parallel()
	type town struct {
		Name    string `gorm:"primaryKey"`
		People  int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&town{}})
	var icu bool
	if stand.MustDo(t, db.Raw("SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu')").Scan(&icu)); !icu {
		t.Skip("the server has no ICU")
	}
	stand.MustDo(t, db.Exec("CREATE COLLATION base (provider = icu, locale = 'und-u-ks-level1', deterministic = false); ALTER TABLE towns ALTER name TYPE text COLLATE base"))
	for name, again := range map[string]string{"é": "e", "Straße": "STRASSE", "\u00fc": "u\u0308", "ｱ": "ア", "same é": "same é"} {
		for how, use := range map[string]func(tx *gorm.DB, one *town) error{
			"written": func(tx *gorm.DB, one *town) error { return tx.Save(one).Error },
			"locked": func(tx *gorm.DB, one *town) error {
				return errors.Join(tx.Model(&town{}).Where("name = ?", name).Update("people", 7).Error, gormlock.LockRow(tx, one))
			},
			"read": func(tx *gorm.DB, one *town) error {
				return errors.Join(tx.Model(&town{}).Where("name = ?", name).Update("people", 7).Error, tx.First(one).Error)
			},
		} {
			stand.MustDo(t, db.Exec("TRUNCATE towns"))
			one := stand.Made(t, db, town{Name: name})
			_ = db.Transaction(func(tx *gorm.DB) error {
				one.People = 3
				stand.Must(t, use(tx, &one))
				one.Name = again
				return errUndo
			})
			stand.MustDo(t, db.Exec("UPDATE towns SET people = 9, version = version + 1"))
			if err := db.Save(&one).Error; !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%s, %s: %+v: %v", name, how, one, err)
			}
		}
	}
}

// TestRespelled_otherRows: a rollback leaves the versions of other rows whose keys only look alike, or that the program has put in the place of what it
// wrote.
func TestRespelled_otherRows(t *testing.T) {
	t.Parallel()
	type unit struct {
		Name    string `gorm:"primaryKey"`
		Factor  int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&unit{}})
	for name, c := range map[string]struct{ one, other string }{
		"only capitals differ": {"mw", "MW"},
		"nothing is alike":     {"mile", "foot"},
		"a number":             {"1", "1.0"},
	} {
		stand.MustDo(t, db.Exec("TRUNCATE units"))
		stand.MustDo(t, db.Create(&unit{Name: c.one, Factor: 1}))
		stand.MustDo(t, db.Create(&unit{Name: c.other, Factor: 2, Version: 2}))
		var list []unit
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Order("version").Find(&list))
			stand.MustDo(t, tx.Save(&list[0]))
			list[0], list[1] = list[1], list[0]
			return errUndo
		})
		for i, want := range []unit{{c.other, 2, 2}, {c.one, 1, 1}} {
			stand.Equal(t, name, list[i], want)
			stand.MustDo(t, db.Save(&list[i]))
		}
		if name != "nothing is alike" {
			continue
		}
		stand.MustDo(t, db.Exec("UPDATE units SET version = CASE name WHEN ? THEN 1 ELSE 2 END", c.one))
		var read []unit // outside of the transaction
		stand.MustDo(t, db.Order("version").Find(&read))
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Save(&read[0]))
			read[0], read[1] = read[1], read[0]
			return errUndo
		})
		stand.Equal(t, name+", read before", read[0], unit{c.other, 2, 2})
	}
}

// TestRespelled_isNoDoubt: keys of such types do not make structs unread that the program has not touched.
func TestRespelled_isNoDoubt(t *testing.T) {
	t.Parallel()
	type number int64
	type host struct {
		Net     string `gorm:"type:inet;primaryKey"`
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	type numbered struct {
		Net     number `gorm:"type:bigint;primaryKey;autoIncrement:false"`
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	type named struct {
		Net     string `gorm:"type:text COLLATE \"C\";primaryKey"`
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&host{}, &numbered{}, &named{}})
	isNoDoubt(t, db, host{Net: "10.0.0.1"}, host{Net: "10.0.0.2"}, host{Net: "10.0.0.3"})
	isNoDoubt(t, db, numbered{Net: 1}, numbered{Net: 2}, numbered{Net: 3})
	isNoDoubt(t, db, named{Net: "a"}, named{Net: "b"}, named{Net: "c"})
}

func isNoDoubt[T any](t *testing.T, db *gorm.DB, a, b, c T) {
	t.Helper()
	stand.MustDo(t, db.Create(&a))
	stand.MustDo(t, db.Create(&b))
	stand.MustDo(t, db.First(&a))
	stand.MustDo(t, db.Last(&b))
	for range 2 {
		stand.InTx(t, db, func(tx *gorm.DB) {
			made := c
			stand.MustDo(t, tx.Create(&made))
			for _, one := range []*T{&a, &b, &a} {
				stand.MustDo(t, tx.Save(one))
			}
		})
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Save(&b))
			_ = tx.Transaction(func(tx *gorm.DB) error { stand.MustDo(t, tx.Save(&a)); return errUndo })
			stand.MustDo(t, tx.Save(&a))
			return errUndo
		})
	}
	stand.MustDo(t, db.Save(&a))
	stand.MustDo(t, db.Save(&b))
}
