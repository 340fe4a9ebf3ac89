package claims_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// vetoTask is a row that a trigger may leave as it is.
type vetoTask struct {
	ID      int64
	State   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// vetoPair is one with a key of two columns.
type vetoPair struct {
	Org, ID int64 `gorm:"primaryKey;autoIncrement:false"`
	State   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A trigger that returns NULL or OLD leaves a row as it is. If no free row in reach can be claimed, the claim says so: an empty slice would mean that the
// queue is empty.
func TestClaim_besideATriggerThatVetoes(t *testing.T) {
	t.Parallel()
	for _, veto := range []string{"NULL", "old"} {
		t.Run(veto, func(t *testing.T) { besideVeto(t, veto) })
	}
}

func besideVeto(t *testing.T, veto string) {
	t.Helper()
	t.Parallel()
	for name, setup := range map[string]string{
		"a table": "CREATE TABLE %s (id bigint PRIMARY KEY, org bigint, state text, version bigint NOT NULL DEFAULT 1); CREATE TRIGGER veto BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION veto()",
		"a partition": "CREATE TABLE %s (id bigint PRIMARY KEY, org bigint, state text, version bigint NOT NULL DEFAULT 1) PARTITION BY RANGE (id);" +
			"CREATE TABLE part PARTITION OF %s DEFAULT; CREATE TRIGGER veto BEFORE UPDATE ON part FOR EACH ROW EXECUTE FUNCTION veto()",
		"a view": "CREATE TABLE behind (id bigint PRIMARY KEY, org bigint, state text, version bigint NOT NULL DEFAULT 1); CREATE VIEW %s AS SELECT * FROM behind;" +
			"CREATE TRIGGER veto BEFORE UPDATE ON behind FOR EACH ROW EXECUTE FUNCTION veto()",
		"of a column": "CREATE TABLE %s (id bigint PRIMARY KEY, org bigint, state text, version bigint NOT NULL DEFAULT 1);" +
			"CREATE TRIGGER veto BEFORE UPDATE OF state ON %s FOR EACH ROW WHEN (old.id > 0) EXECUTE FUNCTION veto()",
	} {
		for condition, where := range map[string]string{"a column": "state = 'ready'", "a sub-query": "id IN (SELECT id FROM %s WHERE state = 'ready')"} {
			t.Run(name+", "+condition+", a key of one column", func(t *testing.T) {
				vetoes(t, "veto_tasks", veto, setup, where, func(row vetoTask) int64 { return row.ID })
			})
			t.Run(name+", "+condition+", a key of two", func(t *testing.T) {
				vetoes(t, "veto_pairs", veto, setup, where, func(row vetoPair) int64 { return row.ID })
			})
		}
	}
}

func vetoes[T any](t *testing.T, table, veto, setup, where string, id func(T) int64) {
	t.Helper()
	t.Parallel()
	db := stand.Versioned(t, nil)
	ex := func(text string) { stand.MustDo(t, db.Exec(strings.ReplaceAll(text, "%s", table))) }
	ex("CREATE FUNCTION veto() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF new.id <= 5 THEN RETURN " + veto + "; END IF; RETURN new; END $$")
	ex(setup)
	claim := func(db *gorm.DB, limit int, more string) (ids []int64, err error) {
		rows, err := gormlock.Claim[T](db, limit, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB {
			return q.Where(strings.ReplaceAll(where, "%s", table)).Where(more).Order("id")
		})
		for _, row := range rows {
			ids = append(ids, id(row))
		}
		return ids, err
	}
	upTo := func(from, to int64) (ids []int64) {
		for ; from <= to; from++ {
			ids = append(ids, from)
		}
		return ids
	}
	ex("INSERT INTO %s (id, org, state) SELECT i, 1, 'ready' FROM generate_series(1, 100) AS i")
	for _, c := range []struct {
		name  string
		limit int
		more  string
		want  []int64 // nil: an error
	}{
		{"none is free", 5, "id > 200", []int64{}},
		{"all in reach are vetoed", 5, "true", nil},
		{"all that are free are vetoed", 40, "id < 4", nil},
		{"some are vetoed", 7, "true", upTo(6, 7)},
		{"none is vetoed", 5, "id > 5", upTo(8, 12)},
		{"many", 40, "true", upTo(13, 47)},
		{"no limit", 1000, "true", upTo(48, 100)},
	} {
		back := errors.New("back")
		ends := func(tx *gorm.DB, end error) error {
			ids, err := claim(tx, c.limit, c.more)
			switch {
			case c.want == nil && (err == nil || stand.FromServer(err) || len(ids) > 0 || !strings.Contains(err.Error(), "a BEFORE UPDATE trigger returned NULL")):
				t.Errorf("%s: %v, %v", c.name, ids, err)
			case c.want != nil && (err != nil || !slices.Equal(ids, c.want)):
				t.Errorf("%s: %v, %v", c.name, ids, err)
			}
			return end
		}
		if err := db.Transaction(func(tx *gorm.DB) error { return ends(tx, back) }); !errors.Is(err, back) {
			t.Error(err)
		}
		_ = ends(db, nil)
	}
}

// touchTask is a row whose version PostgreSQL keeps.
type touchTask struct {
	ID    int64
	State string
	Xmin  uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

// Triggers that set a column are the most usual ones.
func TestClaim_besideOtherTriggers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trigger         string
		counts, changes bool
	}{
		"one that sets a column":          {"CREATE TRIGGER a BEFORE UPDATE ON veto_tasks FOR EACH ROW EXECUTE FUNCTION touch()", true, true},
		"one whose row was never set":     {"CREATE TRIGGER a BEFORE UPDATE ON veto_tasks FOR EACH ROW EXECUTE FUNCTION unset()", true, false},
		"one after":                       {"CREATE TRIGGER a AFTER UPDATE ON veto_tasks FOR EACH ROW EXECUTE FUNCTION veto()", false, true},
		"one that is disabled":            {"CREATE TRIGGER a BEFORE UPDATE ON veto_tasks FOR EACH ROW EXECUTE FUNCTION veto(); ALTER TABLE veto_tasks DISABLE TRIGGER a", false, true},
		"one of inserts":                  {"CREATE TRIGGER a BEFORE INSERT ON veto_tasks FOR EACH ROW EXECUTE FUNCTION veto()", false, true},
		"one of the statement":            {"CREATE TRIGGER a BEFORE UPDATE ON veto_tasks EXECUTE FUNCTION veto()", false, true},
		"one and a rule":                  {"CREATE TRIGGER a BEFORE UPDATE ON veto_tasks FOR EACH ROW WHEN (old.id < 0) EXECUTE FUNCTION veto(); CREATE RULE a AS ON UPDATE TO veto_tasks DO ALSO NOTIFY changed", false, true},
		"one that is not for these rows":  {"CREATE TRIGGER a BEFORE UPDATE ON veto_tasks FOR EACH ROW WHEN (old.id < 0) EXECUTE FUNCTION veto()", true, true},
		"PostgreSQL's own, with a change": {"CREATE TRIGGER a BEFORE UPDATE ON veto_tasks FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()", true, true},
		"without one":                     {"CREATE TRIGGER a BEFORE UPDATE ON veto_tasks FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, nil)
			stand.MustDo(t, db.Exec("CREATE TABLE veto_tasks (id bigint PRIMARY KEY, state text, at timestamptz); INSERT INTO veto_tasks SELECT i, 'ready' FROM generate_series(1, 100) AS i"))
			stand.MustDo(t, db.Exec("CREATE FUNCTION veto() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"))
			stand.MustDo(t, db.Exec("CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.at = now(); RETURN new; END $$"))
			stand.MustDo(t, db.Exec("CREATE FUNCTION unset() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE r veto_tasks; BEGIN RETURN r; END $$"))
			stand.MustDo(t, db.Exec(c.trigger))
			ready := func(q *gorm.DB) *gorm.DB { return q.Table("veto_tasks").Where("state = 'ready'").Order("id") }
			for _, limit := range []int{5, 40} {
				seen, recorder := stand.Recorded(db)
				got, err := gormlock.Claim[touchTask](seen, limit, map[string]any{"state": map[bool]string{true: "running", false: "ready"}[c.changes]}, ready)
				if c.changes && (err != nil || len(got) != limit || got[0].Xmin == 0) || !c.changes && (err == nil || !strings.Contains(err.Error(), "returned NULL")) {
					t.Errorf("%d: %d rows, %v", limit, len(got), err)
				}
				if texts := strings.Join(recorder.Seen(), "\n"); strings.Contains(texts, "gormlock_count") != c.counts {
					t.Errorf("%d: %s", limit, texts)
				}
			}
		})
	}
}

// plainTask is a row without a version.
type plainTask struct {
	ID    int64
	State string
}

// A claim may assign what a row has already.
func TestClaim_ofRowsThatStayAsTheyAre(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&plainTask{}})
	stand.MustDo(t, db.Exec("INSERT INTO plain_tasks SELECT i, CASE WHEN i <= 3 THEN 'mine' ELSE 'ready' END FROM generate_series(1, 6) AS i;"+
		"CREATE FUNCTION same() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$; CREATE TRIGGER same BEFORE UPDATE ON plain_tasks FOR EACH ROW EXECUTE FUNCTION same()"))
	for _, limit := range []int{3, 5} {
		got, err := gormlock.Claim[plainTask](db, limit, map[string]any{"state": "mine"}, func(q *gorm.DB) *gorm.DB { return q.Order("id") })
		if err != nil || len(got) != limit {
			t.Errorf("%d: %v, %v", limit, got, err)
		}
	}
}

// keylessPair is of a table whose key has no NOT NULL.
type keylessPair struct {
	A     int64  `gorm:"primaryKey;autoIncrement:false"`
	B     *int64 `gorm:"primaryKey"`
	State string
}

// keylessTask is one with a key of one column.
type keylessTask struct {
	A     *int64 `gorm:"primaryKey"`
	State string
}

// No statement finds a row by a key with NULL.
func TestClaim_keyWithNULL(t *testing.T) {
	t.Parallel()
	t.Run("a key of one column", func(t *testing.T) { keyless[keylessTask](t, "keyless_tasks", "NULL, i") })
	t.Run("a key of two", func(t *testing.T) { keyless[keylessPair](t, "keyless_pairs", "i, NULL") })
}

func keyless[T any](t *testing.T, table, key string) {
	t.Helper()
	t.Parallel()
	db := stand.Versioned(t, nil)
	stand.MustDo(t, db.Exec("CREATE TABLE "+table+" (a bigint, b bigint, state text, UNIQUE (a, b)); CREATE VIEW keyless_seen AS SELECT * FROM "+table))
	stand.MustDo(t, db.Exec("INSERT INTO "+table+" SELECT i, i AS b, 'ready' FROM generate_series(1, 60) AS i"))
	stand.MustDo(t, db.Exec("INSERT INTO "+table+" SELECT "+key+", 'keyless' FROM generate_series(1, 50) AS i"))
	for _, from := range []string{table, "keyless_seen"} {
		for _, where := range []string{"true", "(SELECT true)"} {
			for _, limit := range []int{3, 40} {
				claim := func(state string) ([]T, error) {
					return gormlock.Claim[T](db, limit, map[string]any{"state": state}, func(q *gorm.DB) *gorm.DB {
						return q.Table(from).Where(where).Where("state = ?", state).Order("a, b")
					})
				}
				if got, err := claim("ready"); err != nil || len(got) != limit {
					t.Errorf("%s, %s, %d: %d rows, %v", from, where, limit, len(got), err)
				}
				if got, err := claim("keyless"); err == nil || stand.FromServer(err) || len(got) > 0 || !strings.Contains(err.Error(), "NULL in the model's key") {
					t.Errorf("%s, %s, %d: %d rows, %v", from, where, limit, len(got), err)
				}
				if got, err := claim("none"); err != nil || len(got) > 0 {
					t.Errorf("%s, %s, %d: %d rows, %v", from, where, limit, len(got), err)
				}
			}
		}
	}
}
