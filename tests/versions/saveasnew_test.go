package versions_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	madeKey struct {
		ID      int64 `gorm:"primaryKey;autoIncrement:false"`
		Note    string
		Tenant  int64
		OwnerID *int64
		Owner   *madeOwner
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	madeOwner  struct{ ID int64 }
	madeZeroes struct {
		Row     int64 `gorm:"primaryKey;autoIncrement:false"`
		Column  int64 `gorm:"primaryKey;autoIncrement:false"`
		Note    string
		Tenant  int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// A Save that finds no row inserts it with what the caller gave the Save: settings, which callbacks read, and clauses.
func TestSave_ofANewRowKeepsWhatTheCallerGave(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&madeOwner{}, &madeKey{}, &madeZeroes{}})
	for _, table := range []string{"made_keys", "made_zeroes"} {
		stand.Must(t, db.Exec("CREATE FUNCTION "+table+"_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'by the trigger'; RETURN NEW; END $$").Error)
		stand.Must(t, db.Exec("CREATE TRIGGER note BEFORE INSERT ON "+table+" FOR EACH ROW EXECUTE FUNCTION "+table+"_note()").Error)
	}
	stand.Must(t, db.Callback().Create().Before("gorm:create").Register("tenant", func(db *gorm.DB) {
		if tenant, is := db.Get("tenant"); is && db.Statement.Schema.LookUpField("Tenant") != nil {
			db.Statement.SetColumn("Tenant", tenant)
		}
	}))
	save := func(db *gorm.DB, row any) {
		t.Helper()
		saved := db.Set("tenant", int64(7)).Save(row)
		stand.Must(t, saved.Error)
		stand.Equal(t, "rows", saved.RowsAffected, 1)
	}
	plain, returned := db, db.Clauses(clause.Returning{}).Session(&gorm.Session{})
	for name, db := range map[string]*gorm.DB{
		"Returning":         returned,
		"Returning columns": db.Clauses(clause.Returning{Columns: []clause.Column{{Name: "note"}}}).Session(&gorm.Session{}),
		"a table":           db.Table("made_keys").Clauses(clause.Returning{}).Session(&gorm.Session{}),
	} {
		for _, one := range []madeKey{{ID: 9}, {ID: 10, Owner: &madeOwner{}}} {
			one.Note = "mine"
			save(db, &one)
			stand.Equal(t, name, one.Note, "by the trigger")
			stand.Equal(t, name+", tenant", stand.Row[madeKey](t, plain, one.ID).Tenant, 7)
			one.Tenant = 8
			stand.Must(t, plain.Save(&one).Error)
			stand.Equal(t, name+", saved again", stand.Row[madeKey](t, plain, one.ID).Note, "by the trigger")
			stand.Must(t, plain.Delete(&one).Error)
		}
	}
	for _, zeroes := range []madeZeroes{{Row: 1, Column: 2, Note: "mine"}, {Row: 1, Note: "mine"}} {
		save(returned, &zeroes)
		stand.Equal(t, "composite key", zeroes.Note, "by the trigger")
		stand.Equal(t, "composite key, tenant", zeroes.Tenant, 7)
		stand.Must(t, db.Save(&zeroes).Error)
	}
	fails := db.Clauses(clause.Insert{Modifier: "nonsense"}).Save(&madeKey{ID: 20})
	if !stand.FromServer(fails.Error) {
		t.Error("the clause is not in the insert:", fails.Error)
	}
}
