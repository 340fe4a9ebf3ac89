package versions_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type setText struct {
	ID      string `gorm:"type:varchar(20);primaryKey"`
	Note    string
	Version int64 `gormlock:"version"`
}

type setUUID struct {
	ID      string `gorm:"type:uuid;primaryKey"`
	Note    string
	Version int32 `gorm:"type:smallint" gormlock:"version"`
}

type setPair struct {
	A, B        string `gorm:"primaryKey"`
	Note        string
	LockVersion *int64 `gorm:"column:version" gormlock:"version,rails"`
}

type setBytes struct {
	ID      []byte `gorm:"primaryKey"`
	Note    string
	Version time.Time `gorm:"type:timestamp" gormlock:"version"`
}

type setKeyTime struct {
	ID      int64 `gorm:"autoIncrement:false"`
	Note    string
	Version time.Time `gormlock:"version"`
}

type setSmall struct {
	ID      int16
	Note    string
	Version uint `gormlock:"version,hibernate"`
}

type setShouted struct {
	ID      shouting `gorm:"type:text;primaryKey"`
	Note    string
	Version int64 `gormlock:"version"`
}

// What a trigger makes of the proposed version is not compared, whatever keys and versions are, and however statements are sent.
func TestUpsert_whereATriggerSetsTheVersionOfOtherKeys(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		stand.Beside(t, map[string]func(t *testing.T){
			"text": func(t *testing.T) { setKeys(t, opts, func(n int) setText { return setText{ID: fmt.Sprint("k'", n)} }) },
			"uuid": func(t *testing.T) {
				setKeys(t, opts, func(n int) setUUID { return setUUID{ID: fmt.Sprintf("00000000-0000-0000-0000-%012d", n)} })
			},
			"pair": func(t *testing.T) {
				setKeys(t, opts, func(n int) setPair { return setPair{A: fmt.Sprint(n % 3), B: fmt.Sprint(n)} })
			},
			"shouted": func(t *testing.T) {
				setKeys(t, opts, func(n int) setShouted { return setShouted{ID: shouting(fmt.Sprint("K", n))} })
			},
			"bytes": func(t *testing.T) {
				setKeys(t, opts, func(n int) setBytes { return setBytes{ID: []byte{byte(n), byte(n >> 8), 1}} })
			},
			"a time":  func(t *testing.T) { setKeys(t, opts, func(n int) setKeyTime { return setKeyTime{ID: int64(n + 1)} }) },
			"a small": func(t *testing.T) { setKeys(t, opts, func(n int) setSmall { return setSmall{ID: int16(n + 1)} }) },
		}, func(t *testing.T, run func(t *testing.T)) { run(t) })
	})
}

func setKeys[T any](t *testing.T, opts []pgtest.Option, row func(n int) T) {
	t.Helper()
	db := stand.Versioned(t, []any{new(T)}, opts...)
	db.Logger = logger.Discard
	table := stand.TableOf(db, new(T))
	_, isTime := reflect.TypeFor[T]().FieldByName("Version")
	first, moved := "1", "version + 1"
	if f, _ := reflect.TypeFor[T]().FieldByName("Version"); isTime && f.Type == reflect.TypeFor[time.Time]() {
		first, moved = "now()", "version + interval '1 second'"
	}
	stand.MustDo(t, db.Exec("CREATE FUNCTION set_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.version := "+first+"; RETURN new; END $$"))
	for _, n := range []int{1, 2, 3, 130} {
		for _, versions := range []int{1, 2, 1000} {
			var rows []T
			for i := range n {
				one := row(i)
				reflect.ValueOf(&one).Elem().FieldByName("Note").SetString("old")
				rows = append(rows, one)
			}
			stand.MustDo(t, db.Exec("DROP TRIGGER IF EXISTS set_it ON "+table))
			stand.MustDo(t, db.Exec("TRUNCATE "+table))
			stand.MustDo(t, db.Create(&rows))
			for i := range n { // each of so many versions
				for range i % versions % 5 {
					stand.MustDo(t, db.Model(&rows[i]).Update("note", "older"))
				}
			}
			stand.MustDo(t, db.Exec("CREATE TRIGGER set_it BEFORE INSERT ON "+table+" FOR EACH ROW EXECUTE FUNCTION set_it()"))
			write := func(note string, rows []T) error {
				for i := range rows {
					reflect.ValueOf(&rows[i]).Elem().FieldByName("Note").SetString(note)
				}
				return db.Save(&rows).Error
			}
			count := func(note string) (n int64) {
				stand.MustDo(t, db.Model(new(T)).Where("note = ?", note).Count(&n))
				return n
			}
			read := func() (rows []T) {
				stand.MustDo(t, db.Find(&rows))
				return rows
			}
			what := fmt.Sprintf("%d rows, of %d versions", n, versions)
			if err := write("mine", read()); err != nil || count("mine") != int64(n) {
				t.Fatalf("%s: %v, %d are written", what, err, count("mine"))
			}
			late := read()
			stand.MustDo(t, db.Exec("UPDATE "+table+" SET version = "+moved+", note = 'rival' WHERE ctid IN (SELECT ctid FROM "+table+" LIMIT 1)"))
			if err := write("late", late); !errors.Is(err, gormlock.ErrStale) || count("late") != 0 {
				t.Fatalf("%s, stale: %v, %d are written", what, err, count("late"))
			}
			late = read()
			stand.MustDo(t, db.Exec("DELETE FROM "+table+" WHERE ctid IN (SELECT ctid FROM "+table+" LIMIT 1)"))
			if err := write("late", late); !errors.Is(err, gormlock.ErrStale) || count("late") != 0 {
				t.Fatalf("%s, gone: %v, %d are written", what, err, count("late"))
			}
		}
	}
}

// setStamps makes a trigger before inserts and updates that sets the version of a table to the time.
func setStamps(t *testing.T, db *gorm.DB, table string) {
	t.Helper()
	db.Logger = logger.Discard
	stand.MustDo(t, db.Exec("CREATE OR REPLACE FUNCTION set_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.version := clock_timestamp(); RETURN new; END $$;"+
		"CREATE TRIGGER set_it BEFORE INSERT OR UPDATE ON "+table+" FOR EACH ROW EXECUTE FUNCTION set_it()"))
}

func TestUpsert_whereATriggerSetsTheVersionOfAnOwnRow(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&setKeyTime{}})
	setStamps(t, db, "set_key_times")
	ownRow(t, db)
	stand.MustDo(t, db.Exec("CREATE OR REPLACE FUNCTION set_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.version := now(); RETURN new; END $$"))
	ownRow(t, db) // all have one time
}

func ownRow(t *testing.T, db *gorm.DB) {
	t.Helper()
	stand.MustDo(t, db.Exec("TRUNCATE set_key_times"))
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Create(&[]setKeyTime{{ID: 1}, {ID: 2}}))
		var rows []setKeyTime
		stand.MustDo(t, tx.Find(&rows))
		stand.MustDo(t, tx.Save(&rows)) // they are not new, although the transaction has inserted them
		stand.MustDo(t, tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&rows))
		stand.MustDo(t, tx.SavePoint("s"))
		stand.MustDo(t, tx.Save(&rows))
		stand.MustDo(t, tx.Delete(&rows[0]))
		stand.MustStale(t, tx.Session(&gorm.Session{}).Save(&rows).Error)
		var n int64
		stand.MustDo(t, tx.RollbackTo("s").Model(&setKeyTime{}).Count(&n))
		stand.Equal(t, "rows", n, 2)
		return nil
	}))
}

// Save with IgnoreVersion stores no row again either.
func TestUpsert_whereATriggerSetsTheVersionThatIsIgnored(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&setKeyTime{}, &setText{}})
	setStamps(t, db, "set_key_times")
	stand.MustDo(t, db.Exec("CREATE FUNCTION set_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.version := 1; RETURN new; END $$;"+
		"CREATE TRIGGER set_it BEFORE INSERT ON set_texts FOR EACH ROW EXECUTE FUNCTION set_one()"))
	ignored(t, db, setKeyTime{ID: 1})
	ignored(t, db, setText{ID: "a"})
}

func ignored[T any](t *testing.T, db *gorm.DB, row T) {
	t.Helper()
	stand.MustDo(t, db.Create(&row))
	var rows []T
	stand.MustDo(t, db.Find(&rows))
	stand.MustDo(t, db.Model(&rows[0]).Update("note", "n")) // it has another version than the structs below
	save := func() error {
		old := []T{row}
		reflect.ValueOf(&old[0]).Elem().FieldByName("Note").SetString("mine")
		return db.Clauses(gormlock.IgnoreVersion()).Save(&old).Error
	}
	stand.Must(t, save())
	stand.MustDo(t, db.Find(&rows))
	if note := reflect.ValueOf(rows[0]).FieldByName("Note").String(); note != "mine" {
		t.Errorf("the row has %q", note)
	}
	if at, is := reflect.ValueOf(rows[0]).FieldByName("Version").Interface().(time.Time); is && at.After(time.Now().Add(time.Hour)) {
		t.Errorf("the row is of %v", at)
	}
	stand.MustDo(t, db.Where("true").Delete(new(T)))
	stand.MustStale(t, save())
	if stand.MustDo(t, db.Find(&rows)); len(rows) > 0 {
		t.Errorf("the row is there again: %v", rows)
	}
}

// A view does not say which rows were inserted, and its table may have the trigger. The statement says it.
func TestUpsert_whereATriggerSetsTheVersionBehindAView(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&setKeyTime{}})
	stand.MustDo(t, db.Exec("ALTER TABLE set_key_times RENAME TO base; CREATE VIEW above AS SELECT * FROM base; CREATE VIEW set_key_times AS SELECT * FROM above"))
	stand.MustDo(t, db.Create(&setKeyTime{ID: 1}))
	var rows []setKeyTime
	stand.MustDo(t, db.Find(&rows))
	stand.MustDo(t, db.Save(&rows)) // without a trigger there is nothing to say
	setStamps(t, db, "base")
	stand.MustDo(t, db.Find(&rows))
	rows[0].Note = "mine"
	stand.MustDo(t, db.Save(&rows))
	if row := stand.Row[setKeyTime](t, db, 1); row.Note != "mine" || !row.Version.Equal(rows[0].Version) {
		t.Errorf("the row is %v, the struct %v", row, rows[0])
	}
	stand.MustDo(t, db.Exec("DELETE FROM base"))
	stand.MustStale(t, db.Save(&rows).Error)
}

// A partition may have a trigger that the table has not.
func TestUpsert_whereATriggerSetsTheVersionInAPartition(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.MustDo(t, db.Exec("CREATE TABLE set_key_times (id bigint PRIMARY KEY, note text, version timestamptz) PARTITION BY HASH (id);"+
		"CREATE TABLE half PARTITION OF set_key_times FOR VALUES WITH (MODULUS 1, REMAINDER 0) PARTITION BY LIST (id); CREATE TABLE leaf PARTITION OF half DEFAULT"))
	setStamps(t, db, "leaf")
	stand.MustDo(t, db.Create(&setKeyTime{ID: 1}))
	var rows []setKeyTime
	stand.MustDo(t, db.Find(&rows))
	stand.MustDo(t, db.Save(&rows))
	stand.MustDo(t, db.Exec("DELETE FROM set_key_times"))
	stand.MustStale(t, db.Save(&rows).Error)
}

type setOwner struct {
	ID    int64
	Items []setOwned `gorm:"foreignKey:OwnerID"`
}

type setOwned struct {
	ID      string `gorm:"primaryKey"`
	OwnerID int64
	Version time.Time `gormlock:"version"`
}

// New children whose keys the application makes can be written again.
func TestCreate_ofChildrenWhoseVersionATriggerSets(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&setOwner{}, &setOwned{}})
	setStamps(t, db, "set_owneds")
	o := setOwner{Items: []setOwned{{ID: "a"}, {ID: "b"}}}
	stand.MustDo(t, db.Create(&o))
	stand.MustDo(t, db.Save(&o.Items))
	stand.Must(t, db.Model(&setOwner{ID: o.ID}).Association("Items").Append(&setOwned{ID: "c"}))
}

// As many values can be sent as without a version: those of the condition are sent already.
func TestUpsert_ofAsManyRowsAsFit(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&setText{}, &setKeyTime{}})
	const n = 65_535 / 3
	stand.MustDo(t, db.Exec("INSERT INTO set_texts SELECT i, 'old', 1 + i % 300 FROM generate_series(1, ?) i", n))
	stand.MustDo(t, db.Exec("INSERT INTO set_key_times SELECT i, 'old', now() - i * interval '1 second' FROM generate_series(1, ?) i", n-1))
	fits[setText](t, db, n)
	fits[setKeyTime](t, db, n-1) // the new time is sent too
}

func fits[T any](t *testing.T, db *gorm.DB, n int) {
	t.Helper()
	var rows []T
	stand.MustDo(t, db.Find(&rows))
	for i := range rows {
		reflect.ValueOf(&rows[i]).Elem().FieldByName("Note").SetString("mine")
	}
	stand.MustDo(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&rows))
	var written int64
	stand.MustDo(t, db.Model(new(T)).Where("note = 'mine'").Count(&written))
	stand.Equal(t, "rows", int(written), n)
}
