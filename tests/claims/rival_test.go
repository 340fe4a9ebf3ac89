package claims_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type rivalTask struct {
	ID, AccountID int64
	State         string `gorm:"not null;default:ready"`
	Version       int64  `gorm:"not null;default:1" gormlock:"version"`
}

// rivalPair has a key of two columns, so its claims are written in another way.
type rivalPair struct {
	Org       int64 `gorm:"primaryKey;autoIncrement:false"`
	ID        int64 `gorm:"primaryKey;autoIncrement:false"`
	AccountID int64
	State     string `gorm:"not null;default:ready"`
}

// A rival claims rows while the statement of a claim runs. What says that they are free may be a sub-query, a joined row, a function or a view,
// which answers as when the statement began. No row goes to both, and the claim goes on to the rows behind.
func TestClaim_besideARival(t *testing.T) {
	t.Parallel()
	t.Run("a key of one column", func(t *testing.T) { besideARival[rivalTask](t, "rival_tasks") })
	t.Run("a key of two", func(t *testing.T) { besideARival[rivalPair](t, "rival_pairs") })
}

func besideARival[T any](t *testing.T, table string) {
	t.Helper()
	t.Parallel()
	r := newRivals[T](t, table)
	where := r.where
	for name, scope := range map[string]func(q *gorm.DB) *gorm.DB{
		"the row itself":    where("state = 'ready'"),
		"both":              where("state = 'ready' AND id IN (SELECT id FROM %s WHERE state = 'ready')"),
		"IN":                where("id IN (SELECT id FROM %s WHERE state = 'ready')"),
		"IN, with a LIMIT":  where("id IN (SELECT id FROM %s WHERE state = 'ready' ORDER BY id LIMIT 50)"),
		"the first of each": where("id IN (SELECT min(id) FROM %s WHERE state = 'ready' GROUP BY account_id)"),
		"DISTINCT ON":       where("id IN (SELECT DISTINCT ON (account_id) id FROM %s WHERE state = 'ready' ORDER BY account_id, id)"),
		"NOT IN":            where("id NOT IN (SELECT id FROM %s WHERE state <> 'ready')"),
		"EXISTS":            where("EXISTS (SELECT FROM %[1]s AS o WHERE o.id = %[1]s.id AND o.state = 'ready')"),
		"ANY":               where("id = ANY(ARRAY(SELECT id FROM %s WHERE state = 'ready'))"),
		"a value":           where("(SELECT o.state FROM %[1]s AS o WHERE o.id = %[1]s.id) = 'ready'"),
		"a function":        where("is_ready(id)"),
		"a query of GORM's": func(q *gorm.DB) *gorm.DB {
			return q.Where("id IN (?)", r.db.Model(new(T)).Select("id").Where("state = 'ready'"))
		},
		"a join of itself": func(q *gorm.DB) *gorm.DB {
			return q.Joins(r.named("JOIN %[1]s AS o ON o.id = %[1]s.id")).Where("o.state = 'ready'")
		},
		"a join of a query": func(q *gorm.DB) *gorm.DB {
			return q.Joins(r.named("JOIN (SELECT id FROM %[1]s WHERE state = 'ready') AS o ON o.id = %[1]s.id"))
		},
		"LATERAL": func(q *gorm.DB) *gorm.DB {
			return q.Joins(r.named("CROSS JOIN LATERAL (SELECT state FROM %[1]s AS o WHERE o.id = %[1]s.id) AS o")).Where("o.state = 'ready'")
		},
		"a view": func(q *gorm.DB) *gorm.DB { return q.Table("ready_rows") },
	} {
		r.race(t, name, scope, func(q *gorm.DB) *gorm.DB { return q.Where("(SELECT pg_sleep(0.3)) IS NOT NULL") })
	}
	for name, text := range map[string]string{
		"a function, called as a column": "%s.is_free",
		"a policy":                       "state IS NOT NULL",
	} {
		r.race(t, name, where(text), nil)
	}
}

// An operator, a cast or a function may be one that somebody made for the database, though its text looks like PostgreSQL's own.
func TestClaim_besideARivalWithOperatorsOfItsOwn(t *testing.T) {
	t.Parallel()
	server := pgtest.Through(pgtest.Fresh(t).DSN("postgres"))
	t.Run("a key of one column", func(t *testing.T) { operatorsOfItsOwn[rivalTask](t, "rival_tasks", server) })
	t.Run("a key of two", func(t *testing.T) { operatorsOfItsOwn[rivalPair](t, "rival_pairs", server) })
}

func operatorsOfItsOwn[T any](t *testing.T, table string, server pgtest.Option) {
	t.Helper()
	t.Parallel()
	r := newRivals[T](t, table, server)
	for _, text := range []string{
		"CREATE FUNCTION says(bigint, text) RETURNS boolean STABLE LANGUAGE sql AS $$ SELECT may_see($1) $$",
		"CREATE OPERATOR ==> (LEFTARG = bigint, RIGHTARG = text, FUNCTION = says)",
		"CREATE OPERATOR = (LEFTARG = bigint, RIGHTARG = text, FUNCTION = says)",
		"CREATE FUNCTION says(bigint) RETURNS boolean STABLE LANGUAGE sql AS $$ SELECT may_see($1) $$",
		"CREATE OPERATOR ? (RIGHTARG = bigint, FUNCTION = says)",
		`CREATE FUNCTION "left"(bigint) RETURNS boolean STABLE LANGUAGE sql AS $$ SELECT may_see($1) $$`,
		"CREATE FUNCTION lower(bigint) RETURNS text STABLE LANGUAGE sql AS $$ SELECT CASE WHEN may_see($1) THEN 'ready' END $$",
		"CREATE TYPE seen AS ENUM ('ready', 'running')",
		"CREATE FUNCTION to_seen(bigint) RETURNS seen STABLE LANGUAGE sql AS $$ SELECT CASE WHEN may_see($1) THEN 'ready'::seen ELSE 'running'::seen END $$",
		"CREATE CAST (bigint AS seen) WITH FUNCTION to_seen(bigint)",
	} {
		stand.MustDo(t, r.db.Exec(text))
	}
	for name, text := range map[string]string{
		"an operator":                  "id ==> 'ready'",
		"an operator before a value":   "NOT ? id IS NOT TRUE",
		"an operator of a known name":  "id = 'ready'::text",
		"IN":                           "id IN ('ready'::text, 'now'::text)",
		"CASE":                         "CASE id WHEN 'ready'::text THEN true END",
		"NULLIF":                       "NULLIF(id, 'ready'::text) IS NULL",
		"a cast":                       "id::seen = 'ready'",
		"CAST":                         "CAST(id AS seen) = 'ready'",
		"a function with a known name": "left(id)",
		"one with a value":             "lower(id) = 'ready'",
	} {
		r.race(t, name, func(q *gorm.DB) *gorm.DB { return q.Where(clause.Expr{SQL: text, WithoutParentheses: true}) }, nil)
	}
}

// rivals claim rows of one table.
type rivals[T any] struct {
	db                   *gorm.DB
	table, columns, role string
}

func newRivals[T any](t *testing.T, table string, opts ...pgtest.Option) rivals[T] {
	t.Helper()
	r := rivals[T]{db: stand.Versioned(t, []any{new(T)}, opts...), table: table, columns: "id, account_id", role: "rival_" + strings.ToLower(rand.Text()[:10])}
	if table == "rival_pairs" {
		r.columns += ", org"
	}
	for _, text := range []string{
		"CREATE FUNCTION is_ready(bigint) RETURNS boolean STABLE LANGUAGE sql AS $$ SELECT state = 'ready' FROM %s WHERE id = $1 $$",
		`CREATE FUNCTION may_see(bigint) RETURNS boolean STABLE SECURITY DEFINER LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('rival.sleeps', true) = 'on' AND $1 = 1 THEN PERFORM pg_sleep(0.3); END IF;
			RETURN (SELECT state = 'ready' FROM %s WHERE id = $1);
		END $$`,
		"CREATE FUNCTION is_free(%s) RETURNS boolean STABLE LANGUAGE sql AS $$ SELECT may_see($1.id) $$",
		"CREATE POLICY ready ON %s USING (may_see(id)) WITH CHECK (true)",
		"CREATE ROLE " + r.role,
		"DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO " + r.role + "', current_schema()); END $$",
		"GRANT ALL ON %s TO " + r.role,
		"CREATE VIEW ready_rows AS SELECT * FROM %s WHERE id IN (SELECT id FROM %s WHERE state = 'ready')",
	} {
		stand.MustDo(t, r.db.Exec(strings.ReplaceAll(text, "%s", table)))
	}
	t.Cleanup(func() { stand.MustDo(t, r.db.Exec("DROP OWNED BY "+r.role+"; DROP ROLE "+r.role)) })
	return r
}

func (r rivals[T]) named(text string) string {
	return strings.NewReplacer("%[1]s", r.table, "%s", r.table).Replace(text)
}

func (r rivals[T]) where(text string) func(q *gorm.DB) *gorm.DB {
	return func(q *gorm.DB) *gorm.DB { return q.Where(r.named(text)) }
}

// claim claims in a transaction. If it sleeps, may_see does.
func (r rivals[T]) claim(t *testing.T, name string, limit int, sleeps bool, scopes ...func(q *gorm.DB) *gorm.DB) (got []T, err error) {
	t.Helper()
	tx := r.db.Begin()
	if sleeps {
		stand.MustDo(t, tx.Exec("SET LOCAL rival.sleeps = 'on'"))
	}
	if name == "a policy" {
		stand.MustDo(t, tx.Exec("SET LOCAL ROLE "+r.role))
	}
	defer func() { err = errors.Join(err, tx.Commit().Error) }()
	return gormlock.Claim[T](tx, limit, map[string]any{"state": "running"}, append(scopes, func(q *gorm.DB) *gorm.DB {
		return q.Order(clause.OrderByColumn{Column: clause.Column{Table: clause.CurrentTable, Name: "id"}})
	})...)
}

// race lets one claim sleep by what the scope sleeps adds to its query, and by what says that a row is free if it is nil: a query with more in it
// may be written in another way. Another one claims meanwhile.
func (r rivals[T]) race(t *testing.T, name string, scope, sleeps func(q *gorm.DB) *gorm.DB) {
	t.Helper()
	policies := map[bool]string{true: "ENABLE", false: "DISABLE"}[name == "a policy"] // a table with policies is claimed with care, whatever the query is
	stand.MustDo(t, r.db.Exec("ALTER TABLE "+r.table+" "+policies+" ROW LEVEL SECURITY"))
	scopes := []func(q *gorm.DB) *gorm.DB{scope}
	for _, limit := range []int{5, 40} { // few and many are claimed in two ways
		stand.MustDo(t, r.db.Exec("TRUNCATE "+r.table))
		stand.MustDo(t, r.db.Exec(fmt.Sprintf("INSERT INTO %s (%s) SELECT i, i %% 100%s FROM generate_series(1, 200) AS i", r.table, r.columns, map[bool]string{true: ", 1"}[r.table == "rival_pairs"])))
		var mine []T
		ended := make(chan error, 1)
		go func() {
			var err error
			if sleeps == nil {
				mine, err = r.claim(t, name, limit, true, scopes...)
			} else {
				mine, err = r.claim(t, name, limit, false, sleeps, scope)
			}
			ended <- err
		}()
		pgtest.Eventually(t, "the first claim sleeps", func() (sleeps bool) {
			stand.MustDo(t, r.db.Raw("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE ?)", "%"+r.table+"%").Scan(&sleeps))
			return sleeps || len(ended) > 0
		})
		rival, err := r.claim(t, name, limit, false, scopes...)
		stand.Must(t, errors.Join(err, <-ended))
		if len(rival) != limit {
			t.Errorf("%s, %d: the rival got %d", name, limit, len(rival))
		}
		if len(mine) != limit && name != "IN, with a LIMIT" {
			t.Errorf("%s, %d: the other one got %d", name, limit, len(mine))
		}
		var again int64
		stand.Must(t, r.db.Table(r.table).Where("state = 'running'").Count(&again).Error)
		if int(again) != len(mine)+len(rival) {
			t.Errorf("%s, %d: %d rows are running, and %d were handed out: %v, %v", name, limit, again, len(mine)+len(rival), mine, rival)
		}
	}
}
