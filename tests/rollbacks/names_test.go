package rollbacks_test

import (
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A table may be named in two ways, or looked up elsewhere in between, and be one all the same. A child that GORM has copied since is put back,
// or it counts as not read.
func TestRollback_oneTableByTwoNames(t *testing.T) {
	t.Parallel()
	plain := func(tx *gorm.DB, c *crate) error { return tx.Save(c).Error }
	for what, way := range map[string]struct {
		save    func(tx *gorm.DB, c *crate) error
		between string
		exact   bool
	}{
		"nothing":           {plain, "SELECT 1", true},
		"with its schema":   {func(tx *gorm.DB, c *crate) error { return tx.Table("south.crates").Save(c).Error }, "SELECT 1", true},
		"an alias":          {func(tx *gorm.DB, c *crate) error { return tx.Table("crates AS c").Save(c).Error }, "SELECT 1", true},
		"the same path":     {plain, "SET LOCAL search_path TO south", true},
		"a longer path":     {plain, "SET LOCAL search_path TO south, public", true},
		"another role":      {plain, "SET LOCAL ROLE NONE", true},
		"set_config":        {plain, "SELECT set_config('search_path', 'south', true)", true},
		"another setting":   {plain, "SET LOCAL statement_timeout = '1min'", true},
		"names of others":   {func(tx *gorm.DB, c *crate) error { return tx.Table("north.crates").Save(c).Error }, "SELECT 1", false},
		"a temporary table": {plain, "CREATE TEMP TABLE staging (id int) ON COMMIT DROP", false},
		"code":              {plain, "DO $$ BEGIN NULL; END $$", false},
	} {
		t.Run(what, func(t *testing.T) {
			db := stand.Open(t)
			stand.Must(t, db.Exec("DROP SCHEMA IF EXISTS south CASCADE; CREATE SCHEMA south").Error)
			stand.Must(t, db.Connection(func(tx *gorm.DB) error {
				return tx.Session(&gorm.Session{NewDB: true}).Transaction(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Exec("SET LOCAL search_path TO south"))
					return tx.AutoMigrate(&cargo{}, &crate{})
				})
			}))
			stand.Must(t, db.Exec("DROP SCHEMA IF EXISTS north CASCADE; CREATE SCHEMA north; CREATE VIEW north.crates AS SELECT * FROM south.crates").Error)
			in := func(body func(tx *gorm.DB) error) error {
				return db.Transaction(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Exec("SET LOCAL search_path TO south"))
					return body(tx)
				})
			}
			c := cargo{Crates: []crate{{Name: "one"}, {Name: "two"}}}
			stand.Must(t, in(func(tx *gorm.DB) error { return tx.Create(&c).Error }))
			_ = in(func(tx *gorm.DB) error {
				c.Crates[0].Name = "mine"
				stand.Must(t, way.save(tx, &c.Crates[0]))
				stand.MustDo(t, tx.Exec(way.between))
				stand.Must(t, tx.Model(&c).Association("Crates").Append(&crate{Name: "new"})) // GORM copies the slice
				return errUndo
			})
			if v := c.Crates[0].Version; v != 1 && (way.exact || v != stand.Unread) {
				t.Errorf("after the rollback it has version %d", v)
			}
			stand.MustDo(t, db.Exec("UPDATE south.crates SET name = 'rival', version = version + 1"))
			if err := in(func(tx *gorm.DB) error { return tx.Save(&c.Crates[0]).Error }); err == nil {
				t.Error("the rival's row was overwritten")
			}
		})
	}
}

// A callback that names the table of a tenant, as GORM follows it, names another one to a rollback too.
func TestRollback_ofTablesThatACallbackNames(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.Exec(gaugeTable+"; CREATE TABLE gauges_east (LIKE gauges INCLUDING ALL)").Error)
	turn := func(db *gorm.DB) {
		if tenant, is := db.Get("tenant"); is {
			db.Statement.Table = "gauges_" + tenant.(string)
		}
	}
	stand.Must(t, db.Callback().Create().Before("*").Register("tenant", turn))
	stand.Must(t, db.Callback().Update().Before("*").Register("tenant", turn))
	own, east := gauge{ID: 1, Place: "own"}, gauge{ID: 1, Place: "east"}
	stand.MustDo(t, db.Create(&own))
	stand.MustDo(t, db.Set("tenant", "east").Create(&east))
	for _, eastFirst := range []bool{false, true} {
		_ = db.Transaction(func(tx *gorm.DB) error {
			writes := []func(){
				func() { stand.Must(t, tx.Model(&own).Update("place", "closed").Error) },
				func() { stand.Must(t, tx.Set("tenant", "east").Model(&east).Update("place", "closed").Error) },
			}
			if eastFirst {
				slices.Reverse(writes)
			}
			writes[0]()
			writes[1]()
			return errUndo
		})
		stand.Equal(t, "own", own, gauge{ID: 1, Place: "own", Version: 1})
		stand.Equal(t, "east", east, gauge{ID: 1, Place: "east", Version: 1})
	}
}

// A helper sets the schema of a tenant, and then a role that is the same for all of them.
func TestRollback_ofTenantsWithOneRole(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.Exec("DROP SCHEMA IF EXISTS tenant_a CASCADE; DROP SCHEMA IF EXISTS tenant_b CASCADE; DROP ROLE IF EXISTS tenants; CREATE ROLE tenants").Error)
	for _, schema := range []string{"tenant_a", "tenant_b"} {
		stand.Must(t, db.Exec("BEGIN; CREATE SCHEMA "+schema+" AUTHORIZATION tenants; SET LOCAL ROLE tenants; SET LOCAL search_path = "+schema+"; "+gaugeTable+"; COMMIT").Error)
	}
	path := func(schema string) string { return "SET LOCAL search_path TO " + schema }
	role := func(text string) func(string) string { return func(string) string { return text } }
	for what, way := range map[string]struct {
		texts []func(schema string) string
		exact bool
	}{
		"a role":           {[]func(string) string{path, role("SET LOCAL ROLE tenants")}, true},
		"a role before":    {[]func(string) string{role("SET LOCAL ROLE tenants"), path}, true},
		"no role any more": {[]func(string) string{role("SET LOCAL ROLE tenants"), path, role("RESET ROLE")}, true},
		"a session":        {[]func(string) string{path, role("SET LOCAL SESSION AUTHORIZATION tenants")}, true},
		"a call":           {[]func(string) string{path, role("SELECT set_config('role', 'tenants', true)")}, true},
		"a call with more": {[]func(string) string{
			func(schema string) string { return "SET LOCAL app.tenant = '" + schema + "'" },
			role("SELECT set_config('search_path', current_setting('app.tenant'), true)"),
		}, false},
		"both in one text": {[]func(string) string{func(schema string) string { return path(schema) + "; SET LOCAL ROLE tenants" }}, false},
	} {
		for _, savepoint := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				turn := func(tx *gorm.DB, schema string) {
					for _, text := range way.texts {
						stand.MustDo(t, tx.Exec(text(schema)))
					}
				}
				rows, schemas := []gauge{{ID: 1}, {ID: 1}}, []string{"tenant_a", "tenant_b"}
				for i, schema := range schemas {
					stand.MustDo(t, db.Exec("TRUNCATE "+schema+".gauges"))
					rows[i].Place = schema
					stand.MustDo(t, db.Table(schema+".gauges").Create(&rows[i]))
				}
				body := func(tx *gorm.DB) error {
					for i, schema := range schemas {
						turn(tx, schema)
						stand.Must(t, tx.Model(&rows[i]).Update("place", "closed").Error)
					}
					return errUndo
				}
				_ = db.Transaction(func(tx *gorm.DB) error {
					if savepoint {
						return ignore(tx.Transaction(body))
					}
					return body(tx)
				})
				for i, schema := range schemas {
					if g := rows[i]; g.Version > 1 || way.exact && g.Version != 1 || g.Version == 1 && g.Place != schema {
						t.Errorf("the row of %s: after the rollback: %+v", schema, g)
					}
				}
			})
		}
	}
}

// A row that the transaction replaces by one with the same key, or whose table it replaces, is another one.
func TestRollback_ofReplacedRows(t *testing.T) {
	t.Parallel()
	for what, replace := range map[string][]string{
		"the row":   {"DELETE FROM gauges", "INSERT INTO gauges (id, place, value) VALUES (1, 'fresh', 0)"},
		"all rows":  {"TRUNCATE gauges", "INSERT INTO gauges (id, place, value) VALUES (1, 'fresh', 0)"},
		"the table": {"ALTER TABLE gauges RENAME TO gauges_old", "CREATE TABLE gauges (LIKE gauges_old INCLUDING ALL)", "INSERT INTO gauges (id, place, value) VALUES (1, 'fresh', 0)"},
	} {
		for _, all := range []bool{false, true} { // of the columns
			t.Run(what, func(t *testing.T) {
				db := stand.Open(t, pgtest.SimpleProtocol())
				stand.Must(t, db.Exec(gaugeTable).Error)
				own, next := gauge{ID: 1, Place: "own", Value: 1}, gauge{}
				stand.MustDo(t, db.Create(&own))
				changes := map[string]any{"place": "closed"}
				if all && what == "the table" {
					changes["value"] = 9
				}
				_ = db.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, tx.Model(&own).Updates(changes).Error)
					for _, text := range replace {
						stand.MustDo(t, tx.Exec(text))
					}
					stand.MustDo(t, tx.First(&next, 1))
					stand.Must(t, tx.Model(&next).Updates(changes).Error)
					return errUndo
				})
				if own.Version > 1 || own.Version == 1 && own != (gauge{ID: 1, Place: "own", Value: 1, Version: 1}) {
					t.Errorf("after the rollback: %+v", own)
				}
				stand.Equal(t, "the new one is not read", next.Version, stand.Unread)
			})
		}
	}
}

// What reads the rows of another table into structs of the model, by a text, a FROM clause or a Preload, is no read of the model's table.
func TestRollback_ofRowsThatWereReadElsewhere(t *testing.T) {
	t.Parallel()
	for what, read := range map[string]func(tx *gorm.DB, list *[]gauge) error{
		"Raw and Find": func(tx *gorm.DB, list *[]gauge) error { return tx.Raw("SELECT * FROM gauges_east").Find(list).Error },
		"Raw and Scan": func(tx *gorm.DB, list *[]gauge) error { return tx.Raw("SELECT * FROM gauges_east").Scan(list).Error },
		"FROM": func(tx *gorm.DB, list *[]gauge) error {
			return tx.Clauses(clause.From{Tables: []clause.Table{{Name: "gauges_east", Alias: "gauges"}}}).Find(list).Error
		},
		"Preload": func(tx *gorm.DB, list *[]gauge) error {
			var owner struct {
				ID     int64
				Gauges []gauge `gorm:"foreignKey:Value"`
			}
			err := tx.Table("gauges").Select("9 AS id").Preload("Gauges", func(tx *gorm.DB) *gorm.DB { return tx.Table("gauges_east") }).Limit(1).Find(&owner).Error
			*list = owner.Gauges
			return err
		},
	} {
		for _, ownFirst := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				db := stand.Open(t)
				stand.Must(t, db.Exec(gaugeTable+"; CREATE TABLE gauges_east (LIKE gauges INCLUDING ALL)").Error)
				stand.MustDo(t, db.Create(&gauge{ID: 1, Place: "own", Value: 9}))
				stand.MustDo(t, db.Table("gauges_east").Create(&gauge{ID: 1, Place: "east", Value: 9}))
				var own, east []gauge
				_ = db.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, read(tx, &east))
					stand.MustDo(t, tx.Find(&own))
					writes := []func(){
						func() { stand.Must(t, tx.Table("gauges_east").Model(&east[0]).Update("place", "closed").Error) },
						func() { stand.Must(t, tx.Model(&own[0]).Update("place", "closed").Error) },
					}
					if ownFirst {
						slices.Reverse(writes)
					}
					writes[0]()
					writes[1]()
					return errUndo
				})
				if g := own[0]; g.Version > 1 || g.Version == 1 && g.Place != "own" {
					t.Errorf("after the rollback: %+v", g)
				}
				if g := east[0]; g.Version > 1 || g.Version == 1 && g.Place != "east" {
					t.Errorf("after the rollback, in the east: %+v", g)
				}
			})
		}
	}
}
