package versions_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A row at the right version that the server did not write, though nobody asked for more than its key, is no success:
// a trigger or a policy kept it.
func TestUnwrittenRowIsAnError(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	stand.Must(t, db.Exec(`CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER keeps BEFORE UPDATE OR DELETE ON accounts FOR EACH ROW EXECUTE FUNCTION keeps()`).Error)
	before, all := a, []stand.Account{a}
	for what, write := range map[string]func() error{
		"Update":            func() error { return db.Model(&a).Update("balance", 2).Error },
		"Save":              func() error { return db.Save(&a).Error },
		"Delete":            func() error { return db.Delete(&a).Error },
		"Touch":             func() error { return gormlock.Touch(db, &a) },
		"Update of a slice": func() error { return db.Model(&all).Update("balance", 2).Error },
		"Save of a slice":   func() error { return db.Save(&all).Error },
		"Delete of a slice": func() error { return db.Delete(&all).Error },
	} {
		e := stand.MustBeStale(t, write())
		stand.Equal(t, what, e.Error(), "gormlock: accounts id=1: version 1 is stale, the row is at 1: "+
			"nothing was written: a trigger, a policy or a condition that a plugin added kept the row as it is, or the row was gone for a moment")
		stand.Equal(t, what, a, before)
		stand.Equal(t, what, all[0], before)
	}
	// With conditions of his own a caller hears of it in RowsAffected, as in GORM.
	for what, tx := range map[string]*gorm.DB{
		"Update": db.Model(&a).Where("balance = 1").Update("balance", 2),
		"Delete": db.Where("balance = 1").Delete(&a),
	} {
		stand.Equal(t, what, tx.Error, nil)
		stand.Equal(t, what, tx.RowsAffected, 0)
	}
}
