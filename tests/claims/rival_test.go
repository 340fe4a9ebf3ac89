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
	db := stand.Versioned(t, []any{new(T)})
	named := func(text string) string { return strings.NewReplacer("%[1]s", table, "%s", table).Replace(text) }
	columns := "id, account_id"
	if table == "rival_pairs" {
		columns += ", org"
	}
	stand.MustDo(t, db.Exec(named(`CREATE FUNCTION is_ready(bigint) RETURNS boolean STABLE LANGUAGE sql AS $$ SELECT state = 'ready' FROM %s WHERE id = $1 $$`)))
	role := "rival_" + strings.ToLower(rand.Text()[:10])
	for _, text := range []string{
		`CREATE FUNCTION may_see(bigint) RETURNS boolean STABLE SECURITY DEFINER LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('rival.sleeps', true) = 'on' AND $1 = 1 THEN PERFORM pg_sleep(0.3); END IF;
			RETURN (SELECT state = 'ready' FROM %s WHERE id = $1);
		END $$`,
		"CREATE FUNCTION is_free(%s) RETURNS boolean STABLE LANGUAGE sql AS $$ SELECT may_see($1.id) $$",
		"CREATE POLICY ready ON %s USING (may_see(id)) WITH CHECK (true)",
		"ALTER TABLE %s ENABLE ROW LEVEL SECURITY",
		"CREATE ROLE " + role,
		"DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO " + role + "', current_schema()); END $$",
		"GRANT ALL ON %s TO " + role,
	} {
		stand.MustDo(t, db.Exec(strings.ReplaceAll(text, "%s", table)))
	}
	t.Cleanup(func() { stand.MustDo(t, db.Exec("DROP OWNED BY "+role+"; DROP ROLE "+role)) })
	stand.MustDo(t, db.Exec(named(`CREATE VIEW ready_rows AS SELECT * FROM %[1]s WHERE id IN (SELECT id FROM %[1]s WHERE state = 'ready')`)))
	where := func(text string) func(q *gorm.DB) *gorm.DB {
		return func(q *gorm.DB) *gorm.DB { return q.Where(named(text)) }
	}
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
			return q.Where("id IN (?)", db.Model(new(T)).Select("id").Where("state = 'ready'"))
		},
		"a join of itself": func(q *gorm.DB) *gorm.DB {
			return q.Joins(named("JOIN %[1]s AS o ON o.id = %[1]s.id")).Where("o.state = 'ready'")
		},
		"a join of a query": func(q *gorm.DB) *gorm.DB {
			return q.Joins(named("JOIN (SELECT id FROM %[1]s WHERE state = 'ready') AS o ON o.id = %[1]s.id"))
		},
		"LATERAL": func(q *gorm.DB) *gorm.DB {
			return q.Joins(named("CROSS JOIN LATERAL (SELECT state FROM %[1]s AS o WHERE o.id = %[1]s.id) AS o")).Where("o.state = 'ready'")
		},
		"a view":                         func(q *gorm.DB) *gorm.DB { return q.Table("ready_rows") },
		"a function, called as a column": where("%s.is_free"),
		"a policy":                       where("state IS NOT NULL"),
	} {
		for _, limit := range []int{5, 40} { // few and many are claimed in two ways
			stand.MustDo(t, db.Exec("TRUNCATE "+table))
			stand.MustDo(t, db.Exec(fmt.Sprintf("INSERT INTO %s (%s) SELECT i, i %% 100%s FROM generate_series(1, 200) AS i", table, columns, map[bool]string{true: ", 1"}[table == "rival_pairs"])))
			claim := func(sleeps bool, scopes ...func(q *gorm.DB) *gorm.DB) (got []T, err error) {
				db := db.Begin()
				if sleeps {
					stand.MustDo(t, db.Exec("SET LOCAL rival.sleeps = 'on'"))
				}
				if name == "a policy" {
					stand.MustDo(t, db.Exec("SET LOCAL ROLE "+role))
				}
				defer func() { err = errors.Join(err, db.Commit().Error) }()
				return gormlock.Claim[T](db, limit, map[string]any{"state": "running"}, append(scopes, scope, func(q *gorm.DB) *gorm.DB {
					return q.Order(clause.OrderByColumn{Column: clause.Column{Table: clause.CurrentTable, Name: "id"}})
				})...)
			}
			var mine []T
			ended := make(chan error, 1)
			go func() {
				var err error
				if name == "a policy" || name == "a function, called as a column" { // which sleep themselves: the query has no function
					mine, err = claim(true)
				} else {
					mine, err = claim(false, func(q *gorm.DB) *gorm.DB { return q.Where("(SELECT pg_sleep(0.3)) IS NOT NULL") })
				}
				ended <- err
			}()
			pgtest.Eventually(t, "the first claim sleeps", func() (sleeps bool) {
				stand.MustDo(t, db.Raw("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE ?)", "%"+table+"%").Scan(&sleeps))
				return sleeps || len(ended) > 0
			})
			rival, err := claim(false)
			stand.Must(t, errors.Join(err, <-ended))
			if len(rival) != limit {
				t.Errorf("%s, %d: the rival got %d", name, limit, len(rival))
			}
			if len(mine) != limit && name != "IN, with a LIMIT" {
				t.Errorf("%s, %d: the other one got %d", name, limit, len(mine))
			}
			var again int64
			stand.Must(t, db.Table(table).Where("state = 'running'").Count(&again).Error)
			if int(again) != len(mine)+len(rival) {
				t.Errorf("%s, %d: %d rows are running, and %d were handed out: %v, %v", name, limit, again, len(mine)+len(rival), mine, rival)
			}
		}
	}
}
