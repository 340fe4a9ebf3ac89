package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	album struct {
		ID      int64
		Name    string
		Songs   []song
		Labels  []sticker `gorm:"many2many:album_stickers"`
		Version int64     `gorm:"not null;default:1" gormlock:"version"`
	}
	song struct {
		ID      int64
		AlbumID *int64
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	sticker struct {
		ID      int64
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// After an import the sequence of a key is behind its rows: a struct without a key may get that of a row, which nobody named.
func TestUpsert_whereTheSequenceIsBehind(t *testing.T) {
	t.Parallel()
	full := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{FullSaveAssociations: true}) }
	songs := func(a *album, more ...song) *album { a.Songs = append(a.Songs, more...); return a }
	for name, save := range map[string]func(db *gorm.DB, a *album) error{
		"one":                      func(db *gorm.DB, _ *album) error { return db.Save(&album{Name: "new"}).Error },
		"a slice":                  func(db *gorm.DB, _ *album) error { return db.Save(&[]album{{Name: "new"}}).Error },
		"two":                      func(db *gorm.DB, _ *album) error { return db.Save(&[]*album{{Name: "new"}, {Name: "new"}}).Error },
		"beside one that was read": func(db *gorm.DB, a *album) error { return db.Save(&[]*album{a, {Name: "new"}}).Error },
		"before one that was read": func(db *gorm.DB, a *album) error { return db.Save(&[]*album{{Name: "new"}, a}).Error },
		"beside one with a key":    func(db *gorm.DB, _ *album) error { return db.Save(&[]album{{ID: 70, Name: "70"}, {Name: "new"}}).Error },
		"in no transaction": func(db *gorm.DB, a *album) error {
			return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Save(&[]*album{{Name: "new"}, a}).Error
		},
		"IgnoreVersion": func(db *gorm.DB, a *album) error {
			return db.Clauses(gormlock.IgnoreVersion()).Save(&[]*album{a, {Name: "new"}}).Error
		},
		"IgnoreVersion, new": func(db *gorm.DB, _ *album) error {
			return db.Clauses(gormlock.IgnoreVersion()).Save(&[]album{{Name: "new"}}).Error
		},
		"upsert": func(db *gorm.DB, _ *album) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&album{Name: "new"}).Error
		},
		"upsert of some": func(db *gorm.DB, a *album) error {
			by := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}
			return db.Clauses(by).Create(&[]*album{a, {Name: "new"}}).Error
		},
		"upsert of a map": func(db *gorm.DB, _ *album) error {
			return db.Model(&album{}).Clauses(clause.OnConflict{UpdateAll: true}).Create(map[string]any{"name": "new"}).Error
		},
		"upsert by the constraint": func(db *gorm.DB, _ *album) error {
			return db.Clauses(clause.OnConflict{OnConstraint: "albums_pkey", DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&album{Name: "new"}).Error
		},
		"upsert by the constraint, of another name": func(db *gorm.DB, _ *album) error {
			by := clause.OnConflict{OnConstraint: "the_key", DoUpdates: clause.AssignmentColumns([]string{"name"})}
			return db.Clauses(by).Create(&album{Name: "new"}).Error
		},
		"upsert by the constraint, of another name, beside one with a key": func(db *gorm.DB, a *album) error {
			by := clause.OnConflict{OnConstraint: "the_key", DoUpdates: clause.AssignmentColumns([]string{"name"})}
			return db.Clauses(by).Create(&[]*album{a, {Name: "new"}}).Error
		},
		"upsert by SQL": func(db *gorm.DB, _ *album) error {
			by := clause.OnConflict{Columns: []clause.Column{{Name: `id int8_ops`, Raw: true}}, UpdateAll: true}
			return db.Clauses(by).Create(&album{Name: "new"}).Error
		},
		"upsert by SQL, IgnoreVersion": func(db *gorm.DB, _ *album) error {
			by := clause.OnConflict{Columns: []clause.Column{{Name: `id int8_ops`, Raw: true}}, UpdateAll: true}
			return db.Clauses(by, gormlock.IgnoreVersion()).Create(&[]album{{Name: "new"}, {ID: 71, Name: "71"}}).Error
		},
		"upsert by a column as it is written": func(db *gorm.DB, _ *album) error {
			by := clause.OnConflict{Columns: []clause.Column{{Name: `("id")`, Raw: true}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}
			return db.Clauses(by).Create(&album{Name: "new"}).Error
		},
		"a child":          func(db *gorm.DB, a *album) error { return db.Save(songs(a, song{Name: "new"})).Error },
		"a child alone":    func(db *gorm.DB, a *album) error { a.Songs = nil; return db.Save(songs(a, song{Name: "new"})).Error },
		"a child, full":    func(db *gorm.DB, a *album) error { return full(db).Save(songs(a, song{Name: "new"})).Error },
		"a child, created": func(db *gorm.DB, _ *album) error { return db.Create(songs(&album{ID: 80}, song{Name: "new"})).Error },
		"a child, created, full": func(db *gorm.DB, _ *album) error {
			return full(db).Create(songs(&album{ID: 80}, song{Name: "new"})).Error
		},
		"Append":      func(db *gorm.DB, a *album) error { return db.Model(a).Association("Songs").Append(&song{Name: "new"}) },
		"Replace":     func(db *gorm.DB, a *album) error { return db.Model(a).Association("Songs").Replace(&song{Name: "new"}) },
		"label":       func(db *gorm.DB, a *album) error { a.Labels = []sticker{{Name: "new"}}; return db.Save(a).Error },
		"label, full": func(db *gorm.DB, a *album) error { a.Labels = []sticker{{Name: "new"}}; return full(db).Save(a).Error },
		"Append label": func(db *gorm.DB, a *album) error {
			return db.Model(a).Association("Labels").Append(&sticker{Name: "new"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&album{}, &song{}, &sticker{}})
			stand.Must(t, db.Exec("INSERT INTO stickers (id, name) VALUES (1, 'old'), (2, 'old'), (3, 'old')").Error)
			for i := range int64(3) {
				stand.Must(t, db.Create(&album{ID: i + 1, Name: "old", Songs: []song{{ID: i + 1, Name: "old"}}}).Error)
			}
			if strings.Contains(name, "another name") {
				stand.Must(t, db.Exec("ALTER TABLE albums RENAME CONSTRAINT albums_pkey TO the_key").Error)
			}
			var a album
			stand.Must(t, db.Preload("Songs").First(&a, 3).Error)
			if err := save(db, &a); err == nil || strings.Contains(err.Error(), "stale") {
				t.Errorf("%v", err)
			}
			var now []album
			stand.Must(t, db.Preload("Songs").Order("id").Find(&now).Error)
			stand.Equal(t, "rows", len(now), 3)
			for _, a := range now {
				stand.Equal(t, "name", a.Name, "old")
				stand.Equal(t, "songs", len(a.Songs), 1)
				stand.Equal(t, "song", a.Songs[0].Name, "old")
			}
			stand.Equal(t, "stickers", db.Find(&[]sticker{}, "name = 'old'").RowsAffected, 3)
			for _, table := range []string{"albums", "songs", "stickers"} {
				stand.Must(t, db.Exec("SELECT setval(pg_get_serial_sequence(?, 'id'), 100)", table).Error)
			}
			a = album{} // the old one may hold what an Append has left there
			stand.Must(t, db.Preload("Songs").First(&a, 3).Error)
			stand.Must(t, save(db, &a))
		})
	}
}

// An upsert by the key needs it in the INSERT, whoever leaves it out.
func TestUpsert_thatLeavesOutTheKeyItFindsRowsBy(t *testing.T) {
	t.Parallel()
	all := clause.OnConflict{UpdateAll: true}
	for name, save := range map[string]func(db *gorm.DB) error{
		"Select": func(db *gorm.DB) error {
			return db.Select("name").Clauses(all).Create(&album{ID: 2, Name: "new"}).Error
		},
		"Omit": func(db *gorm.DB) error { return db.Omit("id").Clauses(all).Create(&album{ID: 2, Name: "new"}).Error },
		"IgnoreVersion": func(db *gorm.DB) error {
			return db.Omit("id").Clauses(all, gormlock.IgnoreVersion()).Create(&album{ID: 2, Name: "new", Version: 1}).Error
		},
		"a child": func(db *gorm.DB) error {
			a := stand.Row[album](t, db, 3)
			a.Songs = []song{{ID: 2}}
			return db.Select("Name", "Songs", "Songs.Name", "Songs.AlbumID").Save(&a).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&album{}, &song{}, &sticker{}})
			for i := range int64(3) {
				stand.Must(t, db.Create(&album{ID: i + 1, Name: "old", Songs: []song{{ID: i + 1, Name: "old"}}}).Error)
			}
			if err := save(db); err == nil || !strings.Contains(err.Error(), "leaves its key id out") {
				t.Errorf("%v", err)
			}
			stand.Equal(t, "albums", db.Find(&[]album{}, "name = 'old'").RowsAffected, 3)
			stand.Equal(t, "songs", db.Find(&[]song{}, "name = 'old' AND album_id = id").RowsAffected, 3)
		})
	}
}

type (
	corner struct {
		X, Y    int64 `gorm:"primaryKey;autoIncrement:false"`
		Text    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	term struct {
		ID      string `gorm:"primaryKey"`
		Text    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// A zero is a key where the database makes none.
func TestUpsert_ofAKeyThatIsZero(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&corner{}, &term{}}, func(t *testing.T, db *gorm.DB) {
		all := clause.OnConflict{UpdateAll: true}
		for range 2 {
			stand.Must(t, db.Clauses(all).Create(&corner{Text: "a"}).Error)
			stand.Must(t, db.Clauses(all).Create(&term{Text: "a"}).Error)
			stand.Must(t, db.Clauses(all).Create(&[]corner{{Text: "b"}, {X: 1, Text: "b"}}).Error)
		}
		var corners []corner
		stand.Must(t, db.Find(&corners).Error)
		stand.Equal(t, "corners", len(corners), 2)
	})
}

// A chain that is used twice keeps what its caller asked for.
func TestUpsert_ofAChainUsedTwice(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&sticker{}}, func(t *testing.T, db *gorm.DB) {
		tx := db.Clauses(clause.OnConflict{UpdateAll: true})
		stand.Must(t, tx.Create(&sticker{Name: "a"}).Error)
		read := stand.Row[sticker](t, db, 1)
		read.Name = "b"
		stand.Must(t, tx.Create(&read).Error)
		stand.Equal(t, "name", stand.Row[sticker](t, db, 1).Name, "b")
	})
}

type (
	attic struct {
		ID      int64
		RoomID  *int64
		Room    *chamber
		Rooms   []chamber `gorm:"many2many:attic_chambers"`
		Version int64     `gorm:"not null;default:1" gormlock:"version"`
	}
	chamber struct {
		ID      int64
		Name    string `gorm:"unique"`
		Version int64  `gorm:"not null;default:1" gormlock:"version"`
	}
)

// GORM leaves out what a parent refers to if a row with one of its unique values is there. It has no key then, so the parent would
// refer to no row. Where the tables have no foreign keys, the server does not notice.
func TestCreate_thatWouldReferToNothing(t *testing.T) {
	t.Parallel()
	unchecked := func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }
	for name, db := range map[string]*gorm.DB{
		"PostgreSQL": stand.Open(t, pgtest.Config(unchecked)),
		"SQLite":     stand.OnSQLite(t, nil, unchecked),
	} {
		t.Run(name, func(t *testing.T) {
			stand.Must(t, db.AutoMigrate(&chamber{}, &attic{}))
			stand.Must(t, db.Create(&chamber{Name: "old"}).Error)
			for name, s := range map[string]attic{
				"belongs to":      {Room: &chamber{Name: "old"}},
				"many to many":    {Rooms: []chamber{{Name: "old"}}},
				"beside new ones": {Rooms: []chamber{{Name: "new"}, {Name: "old"}, {Name: "other"}}},
			} {
				if err := db.Create(&s).Error; err == nil || !strings.Contains(err.Error(), "read that row") {
					t.Errorf("%s: %v", name, err)
				}
				stand.Equal(t, "attics", db.Find(&[]attic{}).RowsAffected, 0)
				stand.Equal(t, "rooms", db.Find(&[]chamber{}).RowsAffected, 1)
				stand.Equal(t, "links", db.Table("attic_chambers").Find(&[]map[string]any{}).RowsAffected, 0)
			}
		})
	}
}

// By another constraint a struct without a key may find a row, whatever the constraint is called.
func TestUpsert_byAnotherConstraint(t *testing.T) {
	t.Parallel()
	set := clause.AssignmentColumns([]string{"name"})
	for name, by := range map[string]clause.OnConflict{
		"constraint": {OnConstraint: "its_name", DoUpdates: set},
		"SQL":        {Columns: []clause.Column{{Name: `name text_ops`, Raw: true}}, DoUpdates: set},
		"Where": {OnConstraint: "its_name", DoUpdates: set,
			Where: clause.Where{Exprs: []clause.Expression{clause.Or(gorm.Expr("stickers.id > 0"), gorm.Expr("stickers.id < 0"))}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&sticker{}})
			stand.Must(t, db.Exec("ALTER TABLE stickers ADD CONSTRAINT its_name UNIQUE (name)").Error)
			stand.Must(t, db.Create(&sticker{ID: 40, Name: "old"}).Error)
			one := sticker{Name: "old"}
			stand.Must(t, db.Clauses(by).Create(&one).Error)
			stand.Equal(t, "key", one.ID, 40)
			two := []sticker{{Name: "new"}, {Name: "old"}, {ID: 41, Name: "41"}}
			stand.Must(t, db.Clauses(by).Create(&two).Error)
			stand.Equal(t, "rows", db.Find(&[]sticker{}).RowsAffected, 3)
			stand.Equal(t, "version", stand.Row[sticker](t, db, 40).Version, 3)
		})
	}
}

type wares struct {
	ID      int64
	Slug    string `gorm:"uniqueIndex"`
	Price   int
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// The sequence may give a struct without a key that of another one in the same upsert. The error says so, and after setval it is stored.
func TestUpsert_bySlugOfASequenceThatIsBehind(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&wares{}})
	stand.MustDo(t, db.Create(&[]wares{{ID: 1, Slug: "a"}, {ID: 2, Slug: "b"}}))
	bySlug := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "slug"}}, DoUpdates: clause.AssignmentColumns([]string{"price"})}).Session(&gorm.Session{})
	known := stand.Row[wares](t, db, 2)
	stand.MustDo(t, db.Exec("SELECT setval(pg_get_serial_sequence('wares', 'id'), 1)"))
	known.Price = 5
	list := []*wares{{Slug: "a", Price: 7}, &known}
	if err := bySlug.Create(list).Error; err == nil || !strings.Contains(err.Error(), "setval") {
		t.Errorf("%v", err)
	}
	stand.Equal(t, "versions", [2]int64{list[0].Version, known.Version}, [2]int64{0, 1})
	stand.Equal(t, "price", stand.Row[wares](t, db, 1).Price+stand.Row[wares](t, db, 2).Price, 0)
	stand.MustDo(t, db.Exec("SELECT setval(pg_get_serial_sequence('wares', 'id'), 100)"))
	stand.MustDo(t, bySlug.Create(list))
	stand.Equal(t, "prices", [2]int{stand.Row[wares](t, db, 1).Price, stand.Row[wares](t, db, 2).Price}, [2]int{7, 5})
}
