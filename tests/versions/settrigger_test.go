package versions_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// setNumber is a child whose version is a number that a trigger sets.
type setNumber struct {
	ID, SetParentID int64
	Note            string
	Version         int64 `gormlock:"version"`
}

// setTime is one whose version is a time.
type setTime struct {
	ID, SetParentID int64
	Note            string
	Version         time.Time `gormlock:"version"`
}

// setParent has such children.
type setParent[C any] struct {
	ID    int64
	Name  string
	Items []C `gorm:"foreignKey:SetParentID"`
}

func (setParent[C]) TableName() string { return "set_parents" }

// setTrigger is a trigger of the children.
type setTrigger struct {
	when, body string
	keeps      bool // no row can be updated
	locks      bool // another trigger locks the rows that are inserted, as a foreign key to them does
	coarse     bool // the version stays for a second, in which the row cannot be written again
}

// setForm is an upsert of children that were read. The first one is the one that others may have changed.
type setForm[C any] struct {
	write func(db *gorm.DB, to *setParent[C], rows []*C) error
	rows  int
	moves bool // the child goes to the parent
	stays bool // nothing of the child is written
}

func setForms[C any]() map[string]setForm[C] {
	full := &gorm.Session{FullSaveAssociations: true}
	return map[string]setForm[C]{
		"Save of one":   {rows: 1, write: func(db *gorm.DB, _ *setParent[C], rows []*C) error { return db.Save(rows).Error }},
		"Save of three": {rows: 3, write: func(db *gorm.DB, _ *setParent[C], rows []*C) error { return db.Save(rows).Error }},
		"UpdateAll": {rows: 1, write: func(db *gorm.DB, _ *setParent[C], rows []*C) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(rows[0]).Error
		}},
		"UpdateAll of three": {rows: 3, write: func(db *gorm.DB, _ *setParent[C], rows []*C) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(rows).Error
		}},
		"FullSaveAssociations": {rows: 1, write: func(db *gorm.DB, _ *setParent[C], rows []*C) error {
			return db.Session(full).Save(&setParent[C]{ID: 1, Name: "from", Items: []C{*rows[0]}}).Error
		}},
		"FullSaveAssociations, to another parent": {rows: 3, moves: true, write: func(db *gorm.DB, to *setParent[C], rows []*C) error {
			to.Items = []C{*rows[0], *rows[1], *rows[2]}
			return db.Session(full).Save(to).Error
		}},
		"Append": {rows: 1, moves: true, write: func(db *gorm.DB, to *setParent[C], rows []*C) error {
			return db.Model(to).Association("Items").Append(rows[0])
		}},
		"Append of three": {rows: 3, moves: true, write: func(db *gorm.DB, to *setParent[C], rows []*C) error {
			return db.Model(to).Association("Items").Append(rows[0], rows[1], rows[2])
		}},
		"Replace": {rows: 1, moves: true, write: func(db *gorm.DB, to *setParent[C], rows []*C) error {
			return db.Model(to).Association("Items").Replace(rows[0])
		}},
		"Save of a parent": {rows: 3, moves: true, write: func(db *gorm.DB, to *setParent[C], rows []*C) error {
			to.Items = []C{*rows[0], *rows[1], *rows[2]}
			return db.Save(to).Error
		}},
		"Create of a parent": {rows: 1, moves: true, write: func(db *gorm.DB, to *setParent[C], rows []*C) error {
			return db.Create(&setParent[C]{Name: "new", Items: []C{*rows[0]}}).Error
		}},
		"Save of its own parent": {rows: 3, stays: true, write: func(db *gorm.DB, _ *setParent[C], rows []*C) error {
			return db.Save(&setParent[C]{ID: 1, Name: "from", Items: []C{*rows[0], *rows[1], *rows[2]}}).Error
		}},
	}
}

// A trigger before an insert changes what an upsert proposes, even for a row that is then updated. The version is compared all the same, and a
// row that is gone is not stored again.
func TestUpsert_whereATriggerSetsTheVersion(t *testing.T) {
	t.Parallel()
	t.Run("bigint", func(t *testing.T) {
		t.Parallel()
		setByTrigger[setNumber](t, "set_numbers", []string{"5", "6", "7"}, "version + 1", map[string]setTrigger{
			"none":                {when: "BEFORE DELETE", body: "RETURN old;"},
			"epoch":               {when: "BEFORE INSERT OR UPDATE", body: "new.version := extract(epoch FROM now())::bigint; RETURN new;", coarse: true},
			"1 for inserts":       {when: "BEFORE INSERT", body: "new.version := 1; RETURN new;"},
			"5 for inserts":       {when: "BEFORE INSERT", body: "new.version := 5; RETURN new;"},
			"5, and locked":       {when: "BEFORE INSERT", body: "new.version := 5; RETURN new;", locks: true},
			"NULL for inserts":    {when: "BEFORE INSERT", body: "new.version := NULL; RETURN new;"},
			"updates go on by 10": {when: "BEFORE UPDATE", body: "new.version := old.version + 10; RETURN new;"},
			"OLD":                 {when: "BEFORE UPDATE", body: "RETURN old;", keeps: true},
		})
	})
	t.Run("a time", func(t *testing.T) {
		t.Parallel()
		at := func(hours string) string { return "date_trunc('second', now()) - interval '" + hours + " hours'" }
		setByTrigger[setTime](t, "set_times", []string{at("5"), at("4"), at("3")}, "date_trunc('second', now())", map[string]setTrigger{
			"none":             {when: "BEFORE DELETE", body: "RETURN old;"},
			"now":              {when: "BEFORE INSERT OR UPDATE", body: "new.version := now(); RETURN new;"},
			"the second":       {when: "BEFORE INSERT OR UPDATE", body: "new.version := date_trunc('second', now()); RETURN new;", coarse: true},
			"long ago":         {when: "BEFORE INSERT", body: "new.version := '2001-01-01'; RETURN new;"},
			"now, and locked":  {when: "BEFORE INSERT OR UPDATE", body: "new.version := now(); RETURN new;", locks: true},
			"now, for updates": {when: "BEFORE UPDATE", body: "new.version := now(); RETURN new;"},
			"now, for inserts": {when: "BEFORE INSERT", body: "new.version := now(); RETURN new;"},
			"OLD":              {when: "BEFORE UPDATE", body: "RETURN old;", keeps: true},
		})
	})
}

func setByTrigger[C any](t *testing.T, table string, versions []string, moved string, triggers map[string]setTrigger) {
	t.Helper()
	for name, pool := range map[string][]pgtest.Option{"": nil, "without transactions": {pgtest.SkipDefaultTransaction()}} {
		db := stand.Versioned(t, []any{&setParent[C]{}, new(C)}, pool...)
		db.Logger = logger.Discard
		stand.MustDo(t, db.Exec("CREATE OR REPLACE FUNCTION set_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$; ALTER TABLE "+table+" ALTER version DROP NOT NULL"))
		for how, trigger := range triggers {
			for form, f := range setForms[C]() {
				for _, rival := range []string{"", "wrote", "deleted"} {
					for _, within := range []bool{false, true} {
						c := setCase[C]{db, table, versions, moved, trigger, f, rival, within}
						if problem := c.run(t); problem != "" {
							t.Errorf("%s trigger %s, %s, a rival %q, in a transaction %v: %s", name, how, form, rival, within, problem)
						}
					}
				}
			}
		}
	}
}

// setCase is one upsert.
type setCase[C any] struct {
	db       *gorm.DB
	table    string
	versions []string
	moved    string
	trigger  setTrigger
	form     setForm[C]
	rival    string
	within   bool
}

// run says what is wrong, judging by the rows.
func (c setCase[C]) run(t *testing.T) string {
	t.Helper()
	db, to := c.db, &setParent[C]{}
	stand.MustDo(t, db.Exec(fmt.Sprintf("DROP TRIGGER IF EXISTS set_it ON %[1]s; TRUNCATE %[1]s, set_parents; INSERT INTO set_parents(id, name) VALUES (1,'from'),(2,'to');"+
		"SELECT setval('set_parents_id_seq', 10); INSERT INTO %[1]s(id, set_parent_id, note, version) VALUES (1,1,'old',%[2]s),(2,1,'old',%[3]s),(3,1,'old',%[4]s)",
		c.table, c.versions[0], c.versions[1], c.versions[2])))
	stand.MustDo(t, db.Exec(fmt.Sprintf("CREATE OR REPLACE FUNCTION set_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s END $$; CREATE TRIGGER set_it %s ON %s FOR EACH ROW EXECUTE FUNCTION set_it()",
		c.trigger.body, c.trigger.when, c.table)))
	if c.trigger.locks {
		locks(t, db, c.table)
	} else {
		stand.MustDo(t, db.Exec("DROP TRIGGER IF EXISTS lock_it ON "+c.table))
	}
	stand.MustDo(t, db.First(to, 2))
	var rows []*C
	stand.MustDo(t, db.Order("id").Limit(c.form.rows).Find(&rows))
	switch c.rival {
	case "wrote":
		stand.MustDo(t, db.Exec("ALTER TABLE "+c.table+" DISABLE TRIGGER set_it; UPDATE "+c.table+" SET note = 'rival', version = "+c.moved+" WHERE id = 1; ALTER TABLE "+c.table+" ENABLE TRIGGER set_it"))
	case "deleted":
		stand.MustDo(t, db.Exec("DELETE FROM "+c.table+" WHERE id = 1"))
	}
	before := c.rows(t)
	for _, row := range rows {
		reflect.ValueOf(row).Elem().FieldByName("Note").SetString("mine")
	}
	write := func(tx *gorm.DB) error { return c.form.write(tx, to, rows) }
	var err error
	if c.within {
		err = db.Transaction(write)
	} else {
		err = write(db)
	}
	now := c.rows(t)
	switch {
	case c.rival == "deleted" || c.rival == "wrote" && !c.form.stays:
		if !errors.Is(err, gormlock.ErrStale) || !reflect.DeepEqual(now, before) {
			return fmt.Sprintf("%v; the rows were %v and are %v", err, before, now)
		}
	case c.trigger.keeps && !c.form.stays:
		if err == nil || stand.FromServer(err) || !strings.Contains(err.Error(), "trigger") || !reflect.DeepEqual(now, before) {
			return fmt.Sprintf("%v; the rows were %v and are %v", err, before, now)
		}
	case err != nil:
		return err.Error()
	case c.form.stays: // a trigger may have moved the version
		for i := range now {
			was, is := reflect.ValueOf(before[i]), reflect.ValueOf(now[i])
			if was.FieldByName("Note").String() != is.FieldByName("Note").String() || was.FieldByName("SetParentID").Int() != is.FieldByName("SetParentID").Int() {
				return fmt.Sprintf("the rows were %v and are %v", before, now)
			}
		}
	default:
		return c.written(t, rows, now)
	}
	return ""
}

// rows are the rows as they are.
func (c setCase[C]) rows(t *testing.T) (all []C) {
	t.Helper()
	stand.MustDo(t, c.db.Order("id").Find(&all))
	return all
}

// written says which rows are not as they were to be, and which structs cannot be written again.
func (c setCase[C]) written(t *testing.T, rows []*C, now []C) string {
	t.Helper()
	for i := range rows {
		row := reflect.ValueOf(now[i])
		if from := row.FieldByName("SetParentID").Int(); c.form.moves == (from == 1) {
			return fmt.Sprintf("row %d belongs to %d", i+1, from)
		}
		links := c.form.moves && row.FieldByName("Note").String() == "old" // only the foreign key was written
		if !links && row.FieldByName("Note").String() != "mine" {
			return fmt.Sprintf("row %d is %+v", i+1, now[i])
		}
	}
	var again []*C
	stand.MustDo(t, c.db.Order("id").Find(&again))
	if err := c.db.Save(again).Error; err != nil && !c.trigger.coarse {
		return "saved again: " + err.Error()
	}
	return ""
}
