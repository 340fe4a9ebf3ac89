package rows_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// viewed is a row of a view.
type viewed struct {
	ID      int64
	Name    string
	Version int64 `gormlock:"version"`
	SeenID  int64
	Seen    *viewed
}

func (viewed) TableName() string { return "shown" }

// locksOnView are all calls that lock rows.
var locksOnView = map[string]func(tx *gorm.DB) error{
	"WithRowLock": func(tx *gorm.DB) error {
		return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]viewed{}).Error
	},
	"WithRowLock, Try": func(tx *gorm.DB) error {
		return tx.Scopes(gormlock.WithRowLock(gormlock.ForShare, gormlock.Try())).First(&viewed{}).Error
	},
	"SkipLocked": func(tx *gorm.DB) error { return tx.Clauses(gormlock.SkipLocked()).Limit(1).Find(&[]viewed{}).Error },
	"Rows": func(tx *gorm.DB) error {
		return tx.Model(&viewed{}).Clauses(gormlock.SkipLocked()).Scan(&[]viewed{}).Error
	},
	"Table": func(tx *gorm.DB) error {
		return tx.Table("shown AS s").Clauses(gormlock.SkipLocked()).Find(&[]map[string]any{}).Error
	},
	"LockRow":       func(tx *gorm.DB) error { return gormlock.LockRow(tx, &viewed{ID: 1}) },
	"LockRows":      func(tx *gorm.DB) error { return gormlock.LockRows(tx, &[]viewed{{ID: 1}, {ID: 2}}) },
	"VerifyVersion": func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, &viewed{ID: 1, Version: 1}) },
	"VerifyVersion with a lock": func(tx *gorm.DB) error {
		return gormlock.VerifyVersion(tx.Clauses(clause.Locking{Strength: "UPDATE"}), &viewed{ID: 1, Version: 1})
	},
	"Claim": func(tx *gorm.DB) error {
		_, err := gormlock.Claim[viewed](tx, 1, map[string]any{"name": "x"})
		return err
	},
	"Of an association": func(tx *gorm.DB) error {
		return tx.InnerJoins("Seen").Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Of("Seen"))).Find(&[]viewed{}).Error
	},
	"Of a raw join": func(tx *gorm.DB) error {
		return tx.Table("kept").Select("kept.id").Joins("join shown as s on s.id = kept.id").Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Of("s"))).Find(&[]map[string]any{}).Error
	},
	"in a sub-query": func(tx *gorm.DB) error {
		return tx.Table("kept").Where("id IN (?)", tx.Model(&viewed{}).Select("id").Clauses(gormlock.SkipLocked())).Find(&[]map[string]any{}).Error
	},
}

// TestRowLockThroughViews: a view that PostgreSQL would lock nothing through is refused by all calls that lock, and the
// transaction goes on; one that it locks through is locked.
func TestRowLockThroughViews(t *testing.T) {
	t.Parallel()
	const instead = `; CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
		UPDATE kept SET name = NEW.name, version = NEW.version WHERE id = OLD.id; RETURN NEW; END$$;
		CREATE TRIGGER instead INSTEAD OF UPDATE ON shown FOR EACH ROW EXECUTE FUNCTION instead()`
	const rules = `; CREATE RULE updates AS ON UPDATE TO shown DO INSTEAD UPDATE kept SET name = NEW.name, version = NEW.version WHERE id = OLD.id RETURNING kept.*`
	const allRules = rules + `; CREATE RULE inserts AS ON INSERT TO shown DO INSTEAD INSERT INTO kept VALUES (NEW.id, NEW.name, NEW.version, NEW.seen_id);
		CREATE RULE deletes AS ON DELETE TO shown DO INSTEAD NOTHING`
	db := stand.Open(t)
	stand.Must(t, db.Exec(`CREATE TABLE kept (id bigint PRIMARY KEY, name text, version bigint NOT NULL DEFAULT 1, seen_id bigint);
		INSERT INTO kept VALUES (1, 'a', 1, 2), (2, 'b', 1, 1);
		CREATE FUNCTION all_kept() RETURNS SETOF kept LANGUAGE plpgsql VOLATILE AS $$BEGIN RETURN QUERY TABLE kept; END$$`).Error)
	show := func(view string) {
		stand.Must(t, db.Exec("DROP VIEW IF EXISTS shown CASCADE; DROP VIEW IF EXISTS inner_view CASCADE; DROP FUNCTION IF EXISTS instead()").Error)
		stand.Must(t, db.Exec(view).Error)
	}
	for name, view := range map[string]string{
		"UNION":             "CREATE VIEW shown AS SELECT * FROM kept WHERE id = 1 UNION ALL SELECT * FROM kept WHERE id <> 1",
		"WITH":              "CREATE VIEW shown AS WITH k AS (SELECT * FROM kept) SELECT * FROM k",
		"GROUP BY":          "CREATE VIEW shown AS SELECT id, max(name) AS name, max(version) AS version, max(seen_id) AS seen_id FROM kept GROUP BY id",
		"DISTINCT":          "CREATE VIEW shown AS SELECT DISTINCT * FROM kept",
		"a function":        "CREATE VIEW shown AS SELECT * FROM all_kept()",
		"VALUES":            "CREATE VIEW shown AS SELECT * FROM (VALUES (1::bigint, 'a', 1::bigint, 2::bigint)) v(id, name, version, seen_id)",
		"no table":          "CREATE VIEW shown AS SELECT 1::bigint AS id, 'a' AS name, 1::bigint AS version, 1::bigint AS seen_id",
		"a view in a view":  "CREATE VIEW inner_view AS SELECT * FROM kept UNION SELECT * FROM kept; CREATE VIEW shown AS SELECT * FROM inner_view",
		"UNION in FROM":     "CREATE VIEW shown AS SELECT * FROM (SELECT * FROM kept UNION SELECT * FROM kept) k",
		"a trigger":         "CREATE VIEW shown AS SELECT * FROM kept" + instead,
		"UNION and a rule":  "CREATE VIEW shown AS SELECT * FROM kept WHERE id = 1 UNION ALL SELECT * FROM kept WHERE id <> 1" + rules,
		"UNION and rules":   "CREATE VIEW shown AS SELECT * FROM kept WHERE id = 1 UNION ALL SELECT * FROM kept WHERE id <> 1" + allRules,
		"WITH and a rule":   "CREATE VIEW shown AS WITH k AS (SELECT * FROM kept) SELECT * FROM k" + rules,
		"VALUES and a rule": "CREATE VIEW shown AS SELECT * FROM (VALUES (1::bigint, 'a', 1::bigint, 2::bigint)) v(id, name, version, seen_id)" + rules,
		"a view in a view with rules": "CREATE VIEW inner_view AS SELECT * FROM kept UNION ALL SELECT * FROM kept; " +
			"CREATE RULE inner_updates AS ON UPDATE TO inner_view DO INSTEAD UPDATE kept SET name = NEW.name WHERE id = OLD.id; CREATE VIEW shown AS SELECT * FROM inner_view",
		"UNION and trigger": "CREATE VIEW shown AS SELECT * FROM kept UNION SELECT * FROM kept" + instead,
	} {
		show(view)
		stand.InTx(t, db, func(tx *gorm.DB) {
			for call, lock := range locksOnView {
				if err := lock(tx); err == nil || !strings.Contains(err.Error(), "no row lock reaches its rows") {
					t.Errorf("%s: %s: %v", name, call, err)
				}
			}
			stand.Must(t, tx.Exec("SELECT 1").Error)
		})
		if err := locksOnView["Claim"](db); err == nil || !strings.Contains(err.Error(), "no row lock reaches its rows") {
			t.Errorf("%s: Claim outside of a transaction: %v", name, err)
		}
	}
	for name, view := range map[string]string{
		"a rule":           "CREATE VIEW shown AS SELECT * FROM kept WHERE id IN (SELECT max(id) FROM kept GROUP BY id)" + rules,
		"rules":            "CREATE VIEW shown AS SELECT * FROM kept" + allRules,
		"a plain view":     "CREATE VIEW shown AS SELECT * FROM kept",
		"a join":           "CREATE VIEW shown AS SELECT k.* FROM kept k JOIN kept o ON o.id = k.seen_id",
		"a view in a view": "CREATE VIEW inner_view AS SELECT * FROM kept WHERE id > 0; CREATE VIEW shown AS SELECT * FROM inner_view ORDER BY id LIMIT 9",
		"a sub-query":      "CREATE VIEW shown AS SELECT * FROM (SELECT * FROM kept) k",
	} {
		show(view)
		for call, lock := range locksOnView {
			if call == "Claim" && name != "a plain view" {
				continue // PostgreSQL does not update it
			}
			if call == "WithRowLock, Try" || call == "SkipLocked" || call == "VerifyVersion" || call == "LockRow" || call == "Claim" {
				stand.Must(t, db.Exec("UPDATE kept SET version = 1").Error)
			}
			stand.InTx(t, db, func(tx *gorm.DB) {
				if err := lock(tx); err != nil {
					t.Errorf("%s: %s: %v", name, call, err)
				} else if call != "in a sub-query" && len(stand.NewRowRival(t).LockedAgainst("kept", "FOR UPDATE")) == 0 {
					t.Errorf("%s: %s locks nothing", name, call)
				}
			})
		}
	}
}

// TestRowLockAsksOnceOfATable: what a table is costs one query, the first time.
func TestRowLockAsksOnceOfATable(t *testing.T) {
	t.Parallel()
	db := seats(t)
	asked := 0
	for range 3 {
		stand.InTx(t, db, func(tx *gorm.DB) {
			recorded, recorder := stand.Recorded(tx)
			stand.Must(t, recorded.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).First(&seat{}).Error)
			asked += recorder.Asked
		})
	}
	stand.Equal(t, "questions", asked, 1)
}
