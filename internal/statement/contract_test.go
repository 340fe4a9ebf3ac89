package statement_test

import (
	"reflect"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock/internal/statement"
)

type owner struct {
	ID      int64
	Name    string
	Deleted gorm.DeletedAt
	Things  []thing
	Linked  []thing `gorm:"many2many:owner_things"`
	Hooked  []hooked
}

// hooked makes a statement of its own before it is created.
type hooked struct {
	ID      int64
	OwnerID *int64
}

func (*hooked) BeforeCreate(tx *gorm.DB) error {
	return tx.Session(&gorm.Session{NewDB: true}).Table("hooks_table").Find(&[]thing{}).Error
}

type thing struct {
	ID      int64
	OwnerID *int64
	Owner   *owner
}

// seen is what a callback of GORM's sees of a statement.
type seen struct {
	save, subQuery, conditions, byThis bool
	clear, linking                     bool
	append, unlinking, byHook          bool
	settings                           map[string]bool
	clauses                            map[string]bool
}

// watched is a database that sends nothing, and what the callbacks of each statement see.
func watched(t *testing.T) (*gorm.DB, *[]seen) {
	t.Helper()
	conn, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	mock.MatchExpectationsInOrder(false)
	for range 20 {
		mock.ExpectBegin()
		mock.ExpectCommit()
	}
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: conn}), &gorm.Config{DryRun: true, Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	var all []seen
	look := func(db *gorm.DB) {
		s := seen{
			save: statement.InSave(), subQuery: statement.InSubQuery(), conditions: statement.InConditions(), byThis: statement.ExecutedBy("statement_test.executeHere"),
			clear: statement.InClear(db.Statement), linking: statement.InLinking(),
			append: statement.InAppend(), unlinking: statement.InUnlinking(), byHook: db.Statement.Table == "hooks_table",
			settings: map[string]bool{}, clauses: map[string]bool{},
		}
		for _, key := range []string{"gorm:update_track_time", "gorm:saved_association_map"} {
			_, s.settings[key] = db.Statement.Settings.Load(key)
		}
		_, s.settings["gorm:started_transaction"] = db.InstanceGet("gorm:started_transaction")
		for name := range db.Statement.Clauses {
			s.clauses[name] = true
		}
		all = append(all, s)
	}
	callbacks := db.Callback()
	for _, err := range []error{
		callbacks.Create().Before("gorm:create").Register("look", look),
		callbacks.Update().Before("gorm:update").Register("look", look),
		callbacks.Query().After("gorm:query").Register("look", look),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return db, &all
}

func find(db *gorm.DB) *gorm.DB { return db.Find(&[]owner{}) }

// What is seen of GORM by its own names: of functions that wait, of settings and of fields. A name that GORM changes fails
// here, and has to be changed in this package.
func TestGORMsNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  func(db *gorm.DB)
		sees func(s seen) bool
	}{
		"gorm.(*DB).Save calls (*processor).Execute": {
			func(db *gorm.DB) { db.Save(&owner{ID: 1}) },
			func(s seen) bool { return s.save },
		},
		"Updates is no Save": {
			func(db *gorm.DB) { db.Select("*").Updates(&owner{ID: 1}) },
			func(s seen) bool { return !s.save },
		},
		"a sub-query is built by (*Statement).AddVar": {
			func(db *gorm.DB) { db.Where("id IN (?)", db.Model(&thing{}).Select("owner_id")).Find(&[]owner{}) },
			func(s seen) bool { return s.subQuery },
		},
		"a query is no sub-query": {
			func(db *gorm.DB) { find(db) },
			func(s seen) bool { return !s.subQuery && !s.conditions },
		},
		"a function of ours that calls Execute": {
			func(db *gorm.DB) { executeHere(db.Model(&owner{})) },
			func(s seen) bool { return s.byThis },
		},
		"gorm:update_track_time says that a slice is saved": {
			func(db *gorm.DB) { db.Save(&[]owner{{ID: 1}}) },
			func(s seen) bool { return s.settings["gorm:update_track_time"] },
		},
		"gorm:saved_association_map says that an association is saved": {
			func(db *gorm.DB) { db.Create(&owner{ID: 1, Things: []thing{{ID: 1}}}) },
			func(s seen) bool { return s.settings["gorm:saved_association_map"] },
		},
		"gorm:started_transaction says that the transaction is the statement's own": {
			func(db *gorm.DB) { db.Create(&owner{ID: 1}) },
			func(s seen) bool { return s.settings["gorm:started_transaction"] },
		},
		"Association(…).Clear of children is an UpdateColumns in (*Association).Replace": {
			func(db *gorm.DB) { _ = db.Model(&owner{ID: 1}).Association("Things").Clear() },
			func(s seen) bool { return s.clear },
		},
		"Association(…).Clear of a parent is one too": {
			func(db *gorm.DB) { _ = db.Model(&thing{ID: 1}).Association("Owner").Clear() },
			func(s seen) bool { return s.clear },
		},
		"the rows of a join table are created in SaveAfterAssociations": {
			func(db *gorm.DB) { db.Create(&owner{ID: 1, Linked: []thing{{ID: 1}}}) },
			func(s seen) bool { return s.linking },
		},
		"what is linked is not": {
			func(db *gorm.DB) { db.Create(&owner{ID: 1, Things: []thing{{ID: 1}}}) },
			func(s seen) bool { return !s.linking && s.settings["gorm:saved_association_map"] },
		},
		"Association(…).Append is in (*Association).saveAssociation": {
			func(db *gorm.DB) { _ = db.Model(&owner{ID: 1}).Association("Things").Append(&thing{ID: 1}) },
			func(s seen) bool { return s.append && !s.unlinking },
		},
		"Association(…).Clear is in (*Association).Replace": {
			func(db *gorm.DB) { _ = db.Model(&owner{ID: 1}).Association("Things").Clear() },
			func(s seen) bool { return s.unlinking },
		},
		"Association(…).Delete is in (*Association).Delete": {
			func(db *gorm.DB) { _ = db.Model(&owner{ID: 1}).Association("Things").Delete(&thing{ID: 1}) },
			func(s seen) bool { return s.unlinking },
		},
		"hooks run in callbacks.callMethod": {
			func(db *gorm.DB) { _ = db.Model(&owner{ID: 1}).Association("Hooked").Append(&hooked{ID: 1}) },
			func(s seen) bool { return s.byHook && !s.append },
		},
		"soft_delete_enabled is among the clauses of a query": {
			func(db *gorm.DB) { find(db) },
			func(s seen) bool { return s.clauses["soft_delete_enabled"] },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, all := watched(t)
			c.run(db)
			for _, s := range *all {
				if c.sees(s) {
					return
				}
			}
			t.Errorf("GORM has changed it: %+v", *all)
		})
	}
}

func executeHere(db *gorm.DB) {
	db.Statement.Dest = &[]owner{}
	db.Callback().Query().Execute(db)
}

// What Assign was given is found where GORM keeps it.
func TestGORMsAssign(t *testing.T) {
	t.Parallel()
	db, _ := watched(t)
	model := reflect.TypeFor[owner]()
	if !statement.IsAssigned(db.Assign(owner{}).Statement, model) || !statement.IsAssigned(db.Assign(&owner{}).Statement, model) {
		t.Error("gorm.Statement keeps elsewhere what Assign was given: there is no field named assigns")
	}
	for _, q := range []*gorm.DB{db.Model(&owner{}), db.Assign(map[string]any{"id": 1}), db.Assign(owner{}, "ID"), db.Assign((*owner)(nil))} {
		if statement.IsAssigned(q.Statement, model) {
			t.Error("what is no struct alone counts as one")
		}
	}
}

// The scopes of a statement are found where GORM keeps them.
func TestGORMsScopes(t *testing.T) {
	t.Parallel()
	db, _ := watched(t)
	plain := db.Model(&owner{})
	if statement.HasScopes(plain.Statement) {
		t.Error("a statement without scopes has some")
	}
	if !statement.HasScopes(plain.Scopes(func(db *gorm.DB) *gorm.DB { return db }).Statement) {
		t.Error("gorm.Statement keeps its scopes elsewhere: there is no field named scopes")
	}
	asked := false
	db.Scopes(func(db *gorm.DB) *gorm.DB { asked = true; return db.Session(&gorm.Session{}) }, func(db *gorm.DB) *gorm.DB {
		if !statement.IsSession(db) {
			t.Error("gorm.DB keeps elsewhere whether it is a session: there is no field named clone")
		}
		return db
	}).Find(&[]owner{})
	if !asked || statement.IsSession(plain) {
		t.Error("a statement is a session")
	}
	ran := ""
	scope := func(name string) func(*gorm.DB) *gorm.DB {
		return func(db *gorm.DB) *gorm.DB { ran += name; return db }
	}
	db.Scopes(func(db *gorm.DB) *gorm.DB { return db.Scopes(scope("added ")) }, scope("other "), statement.LastScope(func(*gorm.DB) { ran += "last" })).Find(&[]owner{})
	if ran != "other added last" {
		t.Errorf("ran %q", ran)
	}
}
