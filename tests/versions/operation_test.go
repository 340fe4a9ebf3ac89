package versions_test

import (
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// depot has an association of each kind. Its children have versions, and some of their tables have rows of other owners too.
type (
	depot struct {
		ID      int64
		Name    string
		MainID  *int64
		Main    *depotPart
		Tags    []depotPart `gorm:"many2many:depot_tags"`
		Badge   *depotLine  `gorm:"foreignKey:BadgeOf"`
		Lines   []depotLine `gorm:"foreignKey:LineOf"`
		Notes   []depotNote `gorm:"polymorphic:Of"`
		Seal    *depotSeal  `gorm:"polymorphic:Of"`
		Version int64       `gorm:"not null;default:1" gormlock:"version"`
	}
	depotPart struct {
		ID      int64
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	depotLine struct {
		ID      int64
		Name    string
		BadgeOf *int64
		LineOf  *int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	depotNote struct {
		ID      int64
		Name    string
		OfID    *int64
		OfType  *string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	depotSeal struct {
		ID     int64
		Name   string
		OfID   *int64
		OfType *string
	}
)

var depotTables = []string{"depots", "depot_parts", "depot_tags", "depot_lines", "depot_notes", "depot_seals"}

// depots has two owners, and fills the tables anew with each call of its result.
func depots(t *testing.T) (*gorm.DB, func()) {
	t.Helper()
	db := stand.Open(t, pgtest.Config(func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }))
	stand.Must(t, db.AutoMigrate(&depotPart{}, &depot{}, &depotLine{}, &depotNote{}, &depotSeal{}))
	return db, func() {
		stand.Must(t, db.Exec("TRUNCATE "+strings.Join(depotTables, ", ")+` RESTART IDENTITY;
			INSERT INTO depot_parts (id, name) VALUES (11, 'a'), (12, 'b');
			INSERT INTO depots (id, name, main_id) VALUES (1, 'one', 11), (2, 'two', 12);
			INSERT INTO depot_tags VALUES (1, 11), (2, 12);
			INSERT INTO depot_lines (id, name, badge_of, line_of) VALUES (1, 'a', 1, 1), (2, 'b', 2, 2);
			INSERT INTO depot_notes (id, name, of_id, of_type) VALUES (1, 'a', 1, 'depots'), (2, 'b', 1, 'invoices'), (3, 'c', 2, 'depots');
			INSERT INTO depot_seals (id, name, of_id, of_type) VALUES (1, 'a', 1, 'depots'), (2, 'b', 1, 'invoices'), (3, 'c', 2, 'depots');
			SELECT setval(pg_get_serial_sequence('depot_lines', 'id'), 100), setval(pg_get_serial_sequence('depot_notes', 'id'), 100),
				setval(pg_get_serial_sequence('depot_seals', 'id'), 100), setval(pg_get_serial_sequence('depot_parts', 'id'), 100)`).Error)
	}
}

// rowsIn are the rows of tables as text.
func rowsIn(t *testing.T, db *gorm.DB, tables ...string) (rows []string) {
	t.Helper()
	for _, table := range tables {
		var all []string
		stand.Must(t, db.Raw("SELECT '"+table+" ' || r::text FROM "+table+" r ORDER BY 1").Scan(&all).Error)
		rows = append(rows, all...)
	}
	return rows
}

// changedIn are the rows that are there no more, and the new ones.
func changedIn(before, after []string) (changed []string) {
	for _, row := range before {
		if !slices.Contains(after, row) {
			changed = append(changed, row)
		}
	}
	if len(after) > len(before) {
		changed = append(changed, "more rows")
	}
	return changed
}

// newIn is a new struct for an association.
func newIn(association string) any {
	return map[string]any{
		"Main": &depotPart{Name: "new"}, "Tags": &depotPart{Name: "new"}, "Badge": &depotLine{Name: "new"}, "Lines": &depotLine{Name: "new"},
		"Notes": &depotNote{Name: "new"}, "Seal": &depotSeal{Name: "new"},
	}[association]
}

var (
	rename = []clause.Assignment{{Column: clause.Column{Name: "name"}, Value: "set"}}
	kinds  = map[string]clause.AssociationOpType{"unlink": clause.OpUnlink, "delete": clause.OpDelete, "update": clause.OpUpdate}
)

// What Set of gorm.G does to an association, it does to the rows of the owners that Where finds, and that the conditions find, or it is an error.
// These rows hold an "a", and no other row does.
func TestOperation_reachesNoOtherRow(t *testing.T) {
	t.Parallel()
	db, refill := depots(t)
	onlyA := []clause.Expression{clause.Eq{Column: "name", Value: "a"}}
	noRow := []clause.Expression{clause.Eq{Column: "name", Value: "nobody"}}
	ofType := []clause.Expression{clause.Eq{Column: "of_type", Value: "depots"}}
	mustRun := map[string]bool{} // the others may be errors
	for _, kind := range []string{"unlink", "delete", "update"} {
		for _, association := range []string{"Badge", "Lines"} {
			mustRun[association+", "+kind], mustRun[association+", "+kind+", all of name a"] = true, true
		}
		for _, association := range []string{"Notes", "Seal"} {
			mustRun[association+", "+kind+", all of the type"] = true
		}
	}
	mustRun["Main, delete"], mustRun["Main, update"], mustRun["Main, update, all of name a"] = true, true, true
	for _, association := range []string{"Main", "Tags", "Badge", "Lines", "Notes", "Seal"} {
		for kind, op := range kinds {
			for conditions, given := range map[string][]clause.Expression{"": nil, ", all of name a": onlyA, ", none": noRow, ", all of the type": ofType} {
				if conditions == ", all of the type" && association != "Notes" && association != "Seal" {
					continue
				}
				name := association + ", " + kind + conditions
				refill()
				before := rowsIn(t, db, depotTables...)
				_, err := gorm.G[depot](db).Where("id = ?", 1).Set(clause.Association{Association: association, Type: op, Set: rename, Conditions: given}).Update(t.Context())
				changed := changedIn(before, rowsIn(t, db, depotTables...))
				switch {
				case err != nil && (!strings.Contains(err.Error(), "gormlock: ") || mustRun[name]):
					t.Errorf("%s: %v", name, err)
				case err != nil && len(changed) > 0:
					t.Errorf("%s: %v, and it changed %q", name, err, changed)
				case err == nil && len(changed) == 0 && conditions != ", none":
					t.Errorf("%s: it changed nothing", name)
				}
				if err != nil {
					continue
				}
				for _, row := range changed {
					if own := strings.Contains(row, ",a,") || strings.Contains(row, ",one,") || strings.Contains(row, "(1,11)"); !own || conditions == ", none" {
						t.Errorf("%s: it changed %q", name, changed)
					}
				}
			}
		}
	}
}

// A model without a version is none of ours.
func TestOperation_ofModelsWithoutVersions(t *testing.T) {
	t.Parallel()
	type plainTag struct{ ID int64 }
	type plainDepot struct {
		ID   int64
		Tags []plainTag `gorm:"many2many:plain_depot_tags"`
	}
	db := stand.Versioned(t, []any{&plainDepot{}, &plainTag{}})
	stand.Must(t, db.Create(&plainDepot{Tags: []plainTag{{}}}).Error)
	_, err := gorm.G[plainDepot](db).Where("id = ?", 1).Set(clause.Association{Association: "Tags", Type: clause.OpUnlink}).Update(t.Context())
	stand.Must(t, err)
	stand.Equal(t, "links", len(rowsIn(t, db, "plain_depot_tags")), 0)
}

// What Set of gorm.G gives to several owners is in each of them, or it is an error.
func TestOperation_givesOneRowToOneOwner(t *testing.T) {
	t.Parallel()
	db, refill := depots(t)
	for _, association := range []string{"Main", "Tags", "Badge", "Lines", "Notes", "Seal"} {
		for name, op := range map[string]clause.Association{
			"a struct": {},
			"a map":    {Set: rename},
		} {
			op.Association, op.Type = association, clause.OpCreate
			for where, owners := range map[string]int{"id = 1": 1, "id > 0": 2} {
				refill()
				if name == "a struct" {
					op.Values = []any{newIn(association)}
				}
				_, err := gorm.G[depot](db).Where(where).Set(op).Update(t.Context())
				if err != nil {
					if shared := name == "a struct" && owners == 2 && association != "Main" && association != "Tags"; !shared || !strings.Contains(err.Error(), "several") {
						t.Errorf("%s, %s, %s: %v", association, name, where, err)
					}
					continue
				}
				var with int
				stand.Must(t, db.Raw(map[string]string{
					"Main":  "SELECT count(*) FROM depots d JOIN depot_parts p ON p.id = main_id WHERE p.name IN ('new', 'set')",
					"Tags":  "SELECT count(*) FROM depot_tags JOIN depot_parts p ON p.id = depot_part_id WHERE p.name IN ('new', 'set')",
					"Badge": "SELECT count(DISTINCT badge_of) FROM depot_lines WHERE name IN ('new', 'set')", "Lines": "SELECT count(DISTINCT line_of) FROM depot_lines WHERE name IN ('new', 'set')",
					"Notes": "SELECT count(DISTINCT of_id) FROM depot_notes WHERE name IN ('new', 'set')", "Seal": "SELECT count(DISTINCT of_id) FROM depot_seals WHERE name IN ('new', 'set')",
				}[association]).Scan(&with).Error)
				if isMap := name == "a map" && (association == "Main" || association == "Badge" || association == "Seal"); !isMap { // GORM gives these to a slice only
					stand.Equal(t, association+", "+name+", "+where+": owners", with, owners)
				}
			}
		}
	}
}

// Create of Set has no Where: what it would do to an association, it would do to all owners that are there.
func TestOperation_ofACreate(t *testing.T) {
	t.Parallel()
	db, refill := depots(t)
	for _, association := range []string{"Main", "Tags", "Badge", "Lines", "Notes", "Seal"} {
		for name, op := range map[string]clause.Association{
			"create":          {Type: clause.OpCreate, Values: []any{newIn(association)}},
			"create by a map": {Type: clause.OpCreate, Set: rename},
			"unlink":          {Type: clause.OpUnlink}, "delete": {Type: clause.OpDelete}, "update": {Type: clause.OpUpdate, Set: rename},
		} {
			if name == "create by a map" && (association == "Main" || association == "Badge" || association == "Seal") {
				continue // GORM does nothing
			}
			refill()
			op.Association = association
			before := rowsIn(t, db, depotTables...)
			err := gorm.G[depot](db).Set(op, rename[0]).Create(t.Context())
			if err == nil || !strings.Contains(err.Error(), "gormlock: ") || !strings.Contains(err.Error(), "Create") {
				t.Errorf("%s, %s: %v", association, name, err)
			}
			if changed := changedIn(before, rowsIn(t, db, depotTables...)); len(changed) > 0 {
				t.Errorf("%s, %s: it changed %q", association, name, changed)
			}
		}
	}
}
