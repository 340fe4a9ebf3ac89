package migrations_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type misspelled struct {
	ID      int64
	Version int64 `gormlok:"version"`
}

type texted struct {
	ID      int64
	Version string `gormlock:"version"`
}

type serialized struct {
	ID      int64
	Version int64 `gorm:"serializer:unixtime;type:timestamptz" gormlock:"version"`
}

type nullable struct {
	ID      int64
	Version int64 `gormlock:"version"`
}

type defaultless struct {
	ID      int64
	Version int64 `gorm:"not null" gormlock:"version"`
}

type narrow struct {
	ID      int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type absent struct {
	ID      int64
	Version int64 `gormlock:"version"`
}

type columnless struct {
	ID      int64
	Note    string `gormlock:"unversioned"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

type fenced struct {
	ID    int64
	Fence int64 `gorm:"not null;default:0" gormlock:"fence"`
}

type plain struct{ ID int64 }

type byXmin struct {
	ID      int64
	Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

type timed struct {
	ID int64
	At time.Time `gorm:"not null;default:now()" gormlock:"version"`
}

func (narrow) TableName() string { return "odd.Narrow" }

// What is wrong with any of the models is in one error, by the model's name, with what cures it.
func TestCheck(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&nullable{}, &defaultless{}, &fenced{}, &plain{}, &byXmin{}, &timed{}, &stand.Account{}, &stand.RailsTask{}})
	stand.Must(t, db.Exec(`CREATE TABLE columnlesses (id bigint)`).Error)
	good := []any{&stand.Account{}, &plain{}, &byXmin{}, &timed{}, stand.RailsTask{}, &[]stand.Account{}}
	stand.Must(t, gormlock.Check(db, good...))
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return gormlock.Check(tx, good...) }))

	err := gormlock.Check(db, append(good, &misspelled{}, &texted{}, &serialized{}, &nullable{}, &defaultless{}, &narrow{}, &absent{}, &columnless{}, &fenced{}, nil, 7)...)
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, says := range []string{
		"11 of 17 models",
		"misspelled: Version: nothing reads the tag `gormlok`",
		"texted: Version: a version field must be an integer", "not string",
		"serialized: Version: a version field must hold what its column holds, without a serializer",
		"nullable: the column version of nullables may be NULL", "SET DEFAULT 1, ALTER COLUMN version SET NOT NULL",
		"defaultless: the column version of defaultlesses has no default",
		"narrow: there is no table odd.Narrow",
		"absent: there is no table absents",
		"columnless: the table columnlesses has no column version", "no column note, which is tagged `unversioned`",
		"fenced: there is no table gormlock_fence: gormlock.MigrateAll",
		"a nil model",
		"int: unsupported data type",
	} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in:\n%v", says, err)
		}
	}
	stand.Must(t, gormlock.MigrateAll(db))
	stand.Must(t, gormlock.Check(db, &fenced{}))
	stand.Must(t, db.Exec("ALTER TABLE gormlock_once DROP COLUMN request").Error)
	if err := gormlock.Check(db, &plain{}); err == nil || !strings.Contains(err.Error(), "gormlock_once has no column request") {
		t.Error(err)
	}
	stand.Must(t, db.Exec(`CREATE SCHEMA IF NOT EXISTS odd; CREATE TABLE odd."Narrow" (id bigint, version text NOT NULL DEFAULT '1')`).Error)
	t.Cleanup(func() { db.Exec("DROP SCHEMA odd CASCADE") })
	if err := gormlock.Check(db, &narrow{}); err == nil || !strings.Contains(err.Error(), "is of type text, and has to be an integer") {
		t.Error(err)
	}
	stand.Must(t, gormlock.Check(db.Session(&gorm.Session{DryRun: true}), &absent{}))

	if err := gormlock.Check(db); !errors.Is(err, gormlock.ErrOption) {
		t.Error(err)
	}
	if err := gormlock.Check(pgtest.Open(t), &plain{}); !errors.Is(err, gormlock.ErrNotInstalled) {
		t.Error(err)
	}
	if err := gormlock.Check(nil, &plain{}); err == nil {
		t.Error("a nil db")
	}
}

// A column that is coarser than the model says would give two writes the same version.
func TestCheck_coarseTimes(t *testing.T) {
	t.Parallel()
	type declared struct {
		ID int64
		At time.Time `gorm:"type:timestamp(0);not null;default:now()" gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&timed{}, &declared{}})
	stand.Must(t, gormlock.Check(db, &timed{}, &declared{}))
	stand.Must(t, db.Exec(`ALTER TABLE timeds ALTER COLUMN at TYPE timestamptz(0)`).Error)
	const says = "the column at of timeds keeps times to 1s"
	if err := gormlock.Check(db, &timed{}, &declared{}); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "type:timestamptz(0)") {
		t.Errorf("%v, want: %s", err, says)
	}
	stand.Must(t, db.Exec(`CREATE DOMAIN moment AS timestamptz(3); ALTER TABLE timeds ALTER COLUMN at TYPE moment`).Error)
	if err := gormlock.Check(db, &timed{}); err == nil || !strings.Contains(err.Error(), "keeps times to 1ms") {
		t.Errorf("a domain: %v", err)
	}
}

type (
	seen      stand.Account
	triggered stand.Account
	ruled     stand.Account
)

func (seen) TableName() string      { return "seen" }
func (triggered) TableName() string { return "triggered" }
func (ruled) TableName() string     { return "ruled" }

// Through a view whose trigger or rule acts instead of the update both of two writers get through, which wait for each other.
func TestCheck_insteadOfUpdates(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for _, text := range []string{
		`ALTER TABLE accounts ADD CHECK (id > 0)`,
		`CREATE VIEW seen AS SELECT * FROM accounts WHERE id > 0`,
		`CREATE VIEW triggered AS SELECT * FROM accounts`,
		`CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE accounts SET version = NEW.version WHERE id = OLD.id; RETURN NEW; END$$`,
		`CREATE TRIGGER acts INSTEAD OF UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION act()`,
		`CREATE VIEW ruled AS SELECT * FROM accounts`,
		`CREATE RULE acts AS ON UPDATE TO ruled DO INSTEAD UPDATE accounts SET version = NEW.version WHERE id = OLD.id RETURNING accounts.*`,
	} {
		stand.Must(t, db.Exec(text).Error)
	}
	err := gormlock.Check(db, &seen{}, &triggered{}, &ruled{})
	for _, says := range []string{"2 of 3 models", "the trigger acts of triggered acts instead", "the rule acts of ruled acts instead"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestCheck_onSQLite(t *testing.T) {
	t.Parallel()
	db := stand.OnSQLite(t, []any{&stand.Account{}, &nullable{}, &fenced{}})
	stand.Must(t, gormlock.Check(db, &stand.Account{}, &nullable{}, &fenced{}))
	err := gormlock.Check(db, &absent{}, &misspelled{})
	if err == nil || !strings.Contains(err.Error(), "absent: there is no table") || !strings.Contains(err.Error(), "misspelled: Version") {
		t.Error(err)
	}
}
