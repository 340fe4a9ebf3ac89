package rows_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// letter is a row of what a query has in its FROM.
type letter struct {
	ID      int64
	BoxID   int64
	Subject string
	Version int64 `gormlock:"version"`
}

const letters = `CREATE TABLE boxes (id bigint PRIMARY KEY, name text);
	CREATE TABLE letters (id bigint PRIMARY KEY, box_id bigint, subject text, version bigint NOT NULL DEFAULT 1);
	INSERT INTO boxes VALUES (1, 'in'), (2, 'out');
	INSERT INTO letters VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 1, 'c');
	CREATE VIEW seen_letters AS SELECT * FROM letters;
	CREATE VIEW other_letters AS WITH c AS (SELECT * FROM letters) SELECT * FROM c;
	CREATE VIEW box_ids AS WITH c AS (SELECT DISTINCT box_id FROM letters) SELECT * FROM c;
	CREATE MATERIALIZED VIEW kept_letters AS SELECT * FROM letters;
	CREATE SEQUENCE numbers;
	CREATE TABLE parted_letters (LIKE letters) PARTITION BY LIST (box_id);
	CREATE TABLE parted_1 PARTITION OF parted_letters FOR VALUES IN (1);
	CREATE TABLE parted_2 PARTITION OF parted_letters FOR VALUES IN (2);
	INSERT INTO parted_letters SELECT * FROM letters;
	CREATE TABLE old_letters () INHERITS (letters);
	INSERT INTO old_letters VALUES (4, 1, 'd');
	CREATE FUNCTION all_letters() RETURNS SETOF letters LANGUAGE sql STABLE AS 'SELECT * FROM letters';
	CREATE FUNCTION slow_letters() RETURNS SETOF letters LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN QUERY TABLE letters; END';
	CREATE FUNCTION found() RETURNS TABLE (letter_id bigint) LANGUAGE sql STABLE AS 'SELECT id FROM letters';
	CREATE FUNCTION halves(n bigint) RETURNS SETOF bigint LANGUAGE sql IMMUTABLE AS 'SELECT generate_series(1, n)'`

// reading is a query without a lock. It has no model.
type reading func(tx *gorm.DB) *gorm.DB

// table reads a FROM in text.
func table(text string, args ...any) reading {
	return func(tx *gorm.DB) *gorm.DB { return tx.Table(text, args...) }
}

// queryIn reads a table that is a query.
func queryIn(text string, query reading) reading {
	return func(tx *gorm.DB) *gorm.DB { return tx.Table(text, query(tx.Session(&gorm.Session{NewDB: true}))) }
}

func rawQuery(text string, args ...any) reading {
	return func(tx *gorm.DB) *gorm.DB { return tx.Raw(text, args...) }
}

// withBefore reads with a WITH in front, as plugins write it.
func withBefore(text string, query reading) reading {
	return func(tx *gorm.DB) *gorm.DB {
		tx = query(tx)
		tx.Statement.Clauses["SELECT"] = clause.Clause{Name: "SELECT", BeforeExpression: clause.Expr{SQL: text}}
		return tx
	}
}

func model(tx *gorm.DB) *gorm.DB { return tx.Model(&letter{}) }

// lockedThrough are what a lock reaches the rows of letters through. None of them may be refused.
var lockedThrough = map[string]reading{
	"a table":                        table("letters"),
	"an alias":                       table("letters AS l"),
	"an alias with columns":          table("letters AS l (id, box_id, subject, version)"),
	"a comment":                      table("letters /* WITH c AS (SELECT 1), */ AS l -- FROM c\n"),
	"ONLY":                           table("ONLY letters AS l"),
	"ONLY in brackets":               table("ONLY (letters) AS l"),
	"a star":                         table("letters * AS l"),
	"TABLESAMPLE":                    table("letters AS l TABLESAMPLE bernoulli (100) REPEATABLE (1)"),
	"a view":                         table("seen_letters"),
	"a model":                        queryIn("(?) AS letters", model),
	"a model without AS":             queryIn("(?) letters", func(tx *gorm.DB) *gorm.DB { return model(tx).Where("id < ?", 9) }),
	"a model with ORDER and LIMIT":   queryIn("(?) AS letters", func(tx *gorm.DB) *gorm.DB { return model(tx).Order("id").Offset(0).Limit(9) }),
	"a raw query":                    queryIn("(?) AS letters", rawQuery("SELECT * FROM letters WHERE id < ?", 9)),
	"a raw query of a view":          queryIn("(?) AS letters", rawQuery("SELECT * FROM seen_letters")),
	"an expression":                  table("? AS letters", gorm.Expr("(SELECT * FROM letters WHERE id < ?)", 9)),
	"TABLE":                          table("(TABLE letters) AS letters"),
	"three levels":                   table("(SELECT * FROM (SELECT * FROM (SELECT * FROM letters) AS a) AS b) AS letters"),
	"brackets":                       table("((SELECT * FROM letters)) AS letters"),
	"words in strings":               table("(SELECT * FROM letters WHERE subject <> ') FROM (VALUES (1)) x' AND subject <> $q$WITH$q$) AS letters"),
	"IS DISTINCT FROM":               table("(SELECT id, box_id, subject, version, id IS DISTINCT FROM 7 AS lucky FROM letters) AS letters"),
	"extract FROM":                   table("(SELECT *, extract(day FROM now()) AS day FROM letters) AS letters"),
	"quoted names":                   table(`(SELECT "l".* FROM "letters" AS "l" JOIN "boxes" "b" ON b.id = l.box_id) AS letters`),
	"a join":                         table("(SELECT l.* FROM letters l JOIN boxes b ON b.id = l.box_id) AS letters"),
	"a join in brackets":             table("(SELECT l.* FROM (letters l CROSS JOIN (boxes b JOIN boxes c USING (id))) WHERE b.id = l.box_id) AS letters"),
	"a named join":                   table("(SELECT j.* FROM (letters l JOIN (SELECT id AS box_id FROM boxes) b USING (box_id)) AS j) AS letters"),
	"NATURAL JOIN":                   table("(SELECT * FROM letters NATURAL JOIN (SELECT id AS box_id, name FROM boxes) b) AS letters"),
	"LATERAL":                        table("(SELECT l.* FROM boxes b, LATERAL (SELECT * FROM letters WHERE box_id = b.id) l) AS letters"),
	"a function beside":              table("(SELECT l.* FROM letters l, generate_series(1, 2) AS g (n)) AS letters"),
	"a function beside, in text":     table("letters l, LATERAL generate_series(1, l.id) AS g (n)"),
	"unnest beside":                  table("(SELECT l.* FROM unnest(ARRAY[1, 2]::bigint[]) WITH ORDINALITY AS u (id, n) JOIN letters l USING (id)) AS letters"),
	"unnest beside, all columns":     table("(SELECT * FROM unnest(ARRAY[1, 2]::bigint[]) AS u (id) JOIN letters l USING (id)) AS letters"),
	"ROWS FROM beside":               table("(SELECT l.* FROM ROWS FROM (unnest(ARRAY[1]), generate_series(1, 2)) AS r (a, b) JOIN letters l ON l.id = r.b) AS letters"),
	"json beside":                    table(`(SELECT * FROM jsonb_to_recordset('[{"id": 1}]') AS j (id bigint) JOIN letters l USING (id)) AS letters`),
	"parts of locked rows":           table("(SELECT g.id, g.version FROM letters l, generate_series(1, l.id) WITH ORDINALITY AS g (id, version) WHERE l.id = 1) AS letters"),
	"parts by an immutable function": table("(SELECT h.* FROM letters l, LATERAL halves(l.id) WITH ORDINALITY AS h (id, version) WHERE l.id = 1) AS letters"),
	"unnest of a query, not read":    table("(SELECT l.* FROM letters l JOIN unnest(ARRAY(SELECT id FROM boxes)) AS u (id) ON u.id = l.box_id) AS letters"),
	"unnest of a query that locks":   table("(SELECT l.* FROM boxes b, unnest(ARRAY(SELECT l FROM letters l WHERE l.box_id = b.id FOR UPDATE)) AS l) AS letters"),
	"a function that finds":          table("(SELECT * FROM letters l JOIN found() f ON f.letter_id = l.id) AS letters"),
	"a function of rows not read":    table("(SELECT l.* FROM letters l JOIN all_letters() a ON a.id = l.id) AS letters"),
	"VALUES beside":                  table("(SELECT l.*, v.rank FROM letters l JOIN (VALUES (1, 'x'), (2, 'y')) AS v (id, rank) ON v.id = l.id) AS letters"),
	"VALUES beside, all columns":     table("(SELECT * FROM letters JOIN (VALUES (1::bigint, 'x')) AS v (id, rank) USING (id)) AS letters"),
	"WITH beside":                    table("(WITH w AS (SELECT box_id FROM letters) SELECT l.* FROM letters l JOIN w USING (box_id)) AS letters"),
	"WITH beside, some columns":      table("(WITH w AS (SELECT id FROM boxes) SELECT l.id, l.subject AS subject, l.version version FROM letters l JOIN w ON w.id = l.box_id) AS letters"),
	"WITH of VALUES":                 table("(WITH v (id) AS (VALUES (1::bigint), (2)) SELECT * FROM letters JOIN v USING (id)) AS letters"),
	"WITH of unnest":                 table("(WITH u AS (SELECT unnest(ARRAY[1, 2]::bigint[]) AS id) SELECT * FROM letters JOIN u USING (id)) AS letters"),
	"WITH of numbers":                table("(WITH RECURSIVE n AS (SELECT 1::bigint AS id UNION ALL SELECT id + 1 FROM n WHERE id < 2) SELECT * FROM letters JOIN n USING (id)) AS letters"),
	"WITH unused":                    table("(WITH c AS (SELECT * FROM letters) SELECT * FROM letters) AS letters"),
	"WITH in a condition":            table("(WITH c AS (SELECT id FROM letters) SELECT * FROM letters WHERE id IN (SELECT id FROM c)) AS letters"),
	"WITH that locks":                table("(WITH c AS (SELECT * FROM letters FOR UPDATE) SELECT * FROM c) AS letters"),
	"WITH that locks through a view": table("(WITH c AS MATERIALIZED (SELECT * FROM seen_letters ORDER BY id FOR UPDATE) SELECT * FROM c) AS letters"),
	"WITH of the name, not there":    table("(SELECT * FROM letters WHERE EXISTS (WITH letters AS (SELECT 1) SELECT FROM letters)) AS letters"),
	"UNION in a condition":           table("(SELECT * FROM letters WHERE id IN (SELECT 1 UNION SELECT 2)) AS letters"),
	"an unlockable view not read":    table("(SELECT l.* FROM letters l JOIN box_ids USING (box_id)) AS letters"),
	"WITH in front":                  withBefore("WITH c AS (SELECT id FROM letters)", func(tx *gorm.DB) *gorm.DB { return tx.Table("letters").Where("id IN (TABLE c)") }),
	"WITH in front of a model":       withBefore("WITH c AS (SELECT id FROM letters)", func(tx *gorm.DB) *gorm.DB { return model(tx).Where("id IN (TABLE c)") }),
	"a comment in front":             withBefore("/* WITH letters AS (SELECT 1) */", model),
	"a FROM of its own": func(tx *gorm.DB) *gorm.DB {
		return model(tx).Clauses(clause.From{Tables: []clause.Table{{Name: "letters"}}})
	},
	"a FROM of its own, in text": func(tx *gorm.DB) *gorm.DB {
		return model(tx).Clauses(clause.From{Tables: []clause.Table{{Name: "(SELECT * FROM letters) AS letters", Raw: true}}})
	},
	"a query joined": func(tx *gorm.DB) *gorm.DB {
		return model(tx).Joins("JOIN (WITH c AS (SELECT DISTINCT box_id AS b FROM letters) SELECT * FROM c) x ON x.b = letters.box_id")
	},
	"a query with a query joined": func(tx *gorm.DB) *gorm.DB {
		return tx.Table("(SELECT * FROM letters) AS letters").Joins("JOIN (SELECT id AS b FROM boxes) x ON x.b = letters.box_id")
	},
}

// unlockable are what a lock does not reach all rows through that are read, and PostgreSQL says nothing.
var unlockable = map[string]reading{
	"WITH":                            table("(WITH c AS (SELECT * FROM letters) SELECT * FROM c) AS letters"),
	"WITH in a query":                 queryIn("(?) AS letters", rawQuery("WITH c AS (SELECT * FROM letters WHERE id < ?) SELECT * FROM c", 9)),
	"WITH of a query":                 queryIn("(?) AS letters", func(tx *gorm.DB) *gorm.DB { return tx.Raw("WITH c AS (?) SELECT * FROM c", model(tx)) }),
	"WITH MATERIALIZED":               table("(WITH c (a, b, c, d) AS NOT MATERIALIZED (SELECT * FROM letters) SELECT a AS id, d AS version FROM c) AS letters"),
	"WITH RECURSIVE":                  table("(WITH RECURSIVE c AS (SELECT * FROM letters WHERE id = 1 UNION ALL SELECT l.* FROM letters l JOIN c ON l.id = c.id + 1) CYCLE id SET again USING way SELECT * FROM c) AS letters"),
	"WITH of WITH":                    table("(WITH a AS (SELECT * FROM letters), b AS (SELECT * FROM a) SELECT * FROM b) AS letters"),
	"WITH quoted":                     table(`(WITH "C" AS (SELECT * FROM letters) SELECT * FROM "C") AS letters`),
	"WITH of its name":                table("(WITH letters AS (SELECT * FROM letters) SELECT * FROM letters) AS letters"),
	"WITH at the third level":         table("(SELECT * FROM (SELECT * FROM (WITH c AS (SELECT * FROM letters) SELECT * FROM c) AS a) AS b) AS letters"),
	"WITH of a level above":           table("(WITH c AS (SELECT * FROM letters) SELECT * FROM (SELECT * FROM c) AS a) AS letters"),
	"WITH and a table":                table("(WITH c AS (SELECT * FROM letters) SELECT c.* FROM c JOIN boxes b ON b.id = c.box_id) AS letters"),
	"WITH and a table, some columns":  table("(WITH c AS (SELECT * FROM letters) SELECT b.name, c.id, c.version FROM c JOIN boxes b ON b.id = c.box_id) AS letters"),
	"WITH TABLE":                      table("(WITH c AS (TABLE letters) TABLE c) AS letters"),
	"WITH in brackets":                table("(((WITH c AS (SELECT * FROM letters) SELECT * FROM c))) AS letters"),
	"WITH behind a comment":           table("( /* a */ WITH -- b\n c AS (SELECT * FROM letters) SELECT * FROM c) AS letters"),
	"WITH that locks less":            table("(WITH c AS (SELECT * FROM letters FOR KEY SHARE) SELECT * FROM c) AS letters"),
	"WITH that locks other rows":      table("(WITH c AS (SELECT l.* FROM letters l JOIN boxes b ON b.id = l.box_id FOR UPDATE OF b) SELECT * FROM c) AS letters"),
	"WITH in a joined query":          table("(SELECT * FROM (SELECT id AS box_id FROM boxes) b JOIN (WITH c AS (SELECT * FROM letters) SELECT * FROM c) l USING (box_id)) AS letters"),
	"WITH LATERAL":                    table("boxes b, LATERAL (WITH c AS (SELECT * FROM letters WHERE box_id = b.id) SELECT * FROM c) AS l"),
	"WITH in front":                   withBefore("WITH c AS (SELECT * FROM letters)", table("c")),
	"WITH in front of a name":         withBefore("WITH letters AS (SELECT * FROM letters)", table("letters")),
	"WITH in front of a model":        withBefore("WITH letters AS (SELECT * FROM letters)", model),
	"WITH in front of a query":        withBefore("WITH c AS (SELECT * FROM letters)", table("(SELECT * FROM c) AS letters")),
	"a function":                      table("all_letters() AS letters"),
	"a function in a query":           table("(SELECT * FROM all_letters()) AS letters"),
	"a function of plpgsql":           table("(SELECT * FROM slow_letters() AS l) AS letters"),
	"a function of WITH":              table("(WITH c AS (SELECT * FROM all_letters()) SELECT * FROM c) AS letters"),
	"a function and a table":          table("(SELECT l.* FROM boxes b JOIN all_letters() l ON l.box_id = b.id) AS letters"),
	"a function and a table, in text": table("boxes b, slow_letters() l"),
	"a function that finds, alone":    table("(SELECT f.letter_id AS id FROM boxes b, found() f) AS letters"),
	"unnest of a query and a table":   table("(SELECT l.* FROM boxes b, unnest(ARRAY(SELECT l FROM letters l WHERE l.box_id = b.id)) AS l) AS letters"),
	"ROWS FROM a query and a table":   table("(SELECT l.* FROM boxes b, ROWS FROM (unnest(ARRAY(SELECT l FROM letters l))) AS l) AS letters"),
	"ROWS FROM":                       table("(SELECT l.* FROM boxes b, ROWS FROM (all_letters()) AS l) AS letters"),
	"json":                            table("jsonb_populate_recordset(null::letters, (SELECT jsonb_agg(letters) FROM letters)) AS letters"),
	"unnest":                          table("unnest((SELECT array_agg(letters) FROM letters)) AS letters"),
	"XMLTABLE":                        table(`XMLTABLE('/a' PASSING '<a><b>1</b></a>' COLUMNS id bigint PATH 'b') AS letters`),
	"generate_series":                 table("(SELECT n AS id FROM generate_series(1, 2) AS n) AS letters"),
	"VALUES":                          table("(VALUES (1::bigint, 1::bigint, 'a', 1::bigint)) AS letters (id, box_id, subject, version)"),
	"no table":                        table("(SELECT 1::bigint AS id, 1::bigint AS version) AS letters"),
	"an unlockable view":              table("(SELECT * FROM other_letters) AS letters"),
	"an unlockable view of a query":   queryIn("(?) AS letters", func(tx *gorm.DB) *gorm.DB { return tx.Table("other_letters") }),
	"an unlockable view in text":      table("boxes b, LATERAL (SELECT * FROM other_letters WHERE box_id = b.id) AS l"),
	"an unlockable view joined":       table("(SELECT l.* FROM boxes b JOIN other_letters l ON l.box_id = b.id) AS letters"),
	"an unlockable view in brackets":  table("(SELECT l.* FROM (boxes b CROSS JOIN (other_letters l CROSS JOIN boxes c))) AS letters"),
	"an unlockable view of WITH":      table("(WITH c AS (SELECT * FROM other_letters FOR UPDATE) SELECT * FROM c) AS letters"),
	"TABLE of an unlockable view":     table("(TABLE other_letters) AS letters"),
	"a FROM of its own": func(tx *gorm.DB) *gorm.DB {
		return model(tx).Clauses(clause.From{Tables: []clause.Table{{Name: "(WITH c AS (SELECT * FROM letters) SELECT * FROM c) AS letters", Raw: true}}})
	},
	"a FROM of its own, an alias": func(tx *gorm.DB) *gorm.DB {
		return model(tx).Clauses(clause.From{Tables: []clause.Table{{Name: "other_letters", Alias: "letters"}}})
	},
	"WITH with a table joined": func(tx *gorm.DB) *gorm.DB {
		return tx.Table("(WITH c AS (SELECT * FROM letters) SELECT * FROM c) AS letters").Joins("JOIN boxes ON boxes.id = letters.box_id")
	},
}

// refusedByServer are queries that PostgreSQL itself refuses to lock.
var refusedByServer = map[string]reading{
	"UNION":               table("(SELECT * FROM letters UNION SELECT * FROM letters) AS letters"),
	"UNION in brackets":   table("((SELECT * FROM letters) UNION ALL (SELECT * FROM letters)) AS letters"),
	"DISTINCT":            table("(SELECT DISTINCT * FROM letters) AS letters"),
	"GROUP BY":            table("(SELECT id, max(version) AS version FROM letters GROUP BY id) AS letters"),
	"HAVING":              table("(SELECT 1 AS id FROM letters HAVING true) AS letters"),
	"an aggregate":        table("(SELECT max(id) AS id FROM letters) AS letters"),
	"a window function":   table("(SELECT *, row_number() OVER () AS n FROM letters) AS letters"),
	"a set":               table("(SELECT *, generate_series(1, 2) AS n FROM letters) AS letters"),
	"a materialized view": table("(SELECT * FROM kept_letters) AS letters"),
	"an outer side":       table("(SELECT l.* FROM boxes b LEFT JOIN letters l ON l.box_id = b.id) AS letters"),
	"a sequence":          table("(SELECT last_value AS id FROM numbers) AS letters"),
	"a WITH that writes":  table("(WITH c AS (UPDATE letters SET subject = 'x' RETURNING *) SELECT * FROM c) AS letters"),
}

// locksOfReading are the calls that lock what is read.
var locksOfReading = map[string]func(tx *gorm.DB, read reading) ([]int64, error){
	"WithRowLock": func(tx *gorm.DB, read reading) ([]int64, error) {
		var rows []letter
		err := read(tx).Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&rows).Error
		return idsOfLetters(rows), err
	},
	"into maps": func(tx *gorm.DB, read reading) (ids []int64, err error) {
		var rows []map[string]any
		err = read(tx).Clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(time.Minute))).Find(&rows).Error
		for _, row := range rows {
			if id, ok := row["id"].(int64); ok {
				ids = append(ids, id)
			}
		}
		return ids, err
	},
	"SkipLocked": func(tx *gorm.DB, read reading) ([]int64, error) {
		var rows []letter
		err := read(tx).Clauses(gormlock.SkipLocked()).Scan(&rows).Error
		return idsOfLetters(rows), err
	},
	"Try": func(tx *gorm.DB, read reading) ([]int64, error) {
		var row letter
		err := read(tx).Clauses(gormlock.RowLock(gormlock.ForShare, gormlock.Try())).Take(&row).Error
		return []int64{row.ID}, err
	},
	"in a sub-query": func(tx *gorm.DB, read reading) ([]int64, error) {
		query := read(tx.Session(&gorm.Session{NewDB: true})).Clauses(gormlock.SkipLocked())
		return nil, tx.Table("boxes").Where("EXISTS (?)", query).Find(&[]map[string]any{}).Error
	},
	"in a sub-query with LIMIT": func(tx *gorm.DB, read reading) ([]int64, error) {
		query := read(tx.Session(&gorm.Session{NewDB: true})).Clauses(gormlock.RowLock(gormlock.ForUpdate)).Limit(2).Offset(1)
		return nil, tx.Table("boxes").Where("EXISTS (?)", query).Find(&[]map[string]any{}).Error
	},
	"Row": func(tx *gorm.DB, read reading) ([]int64, error) {
		var id int64
		err := read(tx).Select("id").Clauses(gormlock.RowLock(gormlock.ForUpdate)).Row().Scan(&id)
		return []int64{id}, err
	},
	"LockRow": func(tx *gorm.DB, read reading) ([]int64, error) {
		return []int64{1}, gormlock.LockRow(read(tx), &letter{ID: 1})
	},
	"LockRows": func(tx *gorm.DB, read reading) ([]int64, error) {
		return []int64{1}, gormlock.LockRows(read(tx), &[]letter{{ID: 1}})
	},
	"VerifyVersion": func(tx *gorm.DB, read reading) ([]int64, error) {
		return []int64{1}, gormlock.VerifyVersion(read(tx), &letter{ID: 1, Version: 1})
	},
	"VerifyVersion of a lock": func(tx *gorm.DB, read reading) ([]int64, error) {
		return []int64{1}, gormlock.VerifyVersion(read(tx).Clauses(clause.Locking{Strength: "UPDATE"}), &letter{ID: 1, Version: 1})
	},
}

// keyed are the calls that look for the key of a row.
var keyed = map[string]bool{"LockRow": true, "LockRows": true, "VerifyVersion": true, "VerifyVersion of a lock": true}

func idsOfLetters(rows []letter) (ids []int64) {
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}

// TestRowLockOfAnyFrom: whatever a query has in its FROM, the rows that a lock is asked of are locked, or the call is an
// error that says what is not, and the transaction goes on.
func TestRowLockOfAnyFrom(t *testing.T) {
	t.Parallel()
	db, rival := stand.Open(t), stand.NewRowRival(t)
	stand.Must(t, db.Exec(letters).Error)
	each := func(readings map[string]reading, check func(t *testing.T, tx *gorm.DB, call string, ids []int64, err error)) {
		for name, read := range readings {
			t.Run(name, func(t *testing.T) {
				for call, lock := range locksOfReading {
					stand.InTx(t, db, func(tx *gorm.DB) {
						ids, err := lock(tx, read)
						var locked []int64
						if err == nil {
							locked = lockedLetters(t, rival)
						}
						if err == nil && (len(locked) == 0 || slices.ContainsFunc(ids, func(id int64) bool { return !slices.Contains(locked, id) })) {
							t.Errorf("%s read %d and locked %d, without an error", call, ids, locked)
						}
						check(t, tx, call, ids, err)
					})
				}
			})
		}
	}
	each(lockedThrough, func(t *testing.T, _ *gorm.DB, call string, ids []int64, err error) {
		t.Helper()
		if keyed[call] && sqlstate.Of(err) == sqlstate.UndefinedTable {
			return // GORM does not see the name of the table, in which the key is looked for
		}
		if err != nil || len(ids) == 0 && !strings.Contains(call, "sub-query") {
			t.Errorf("%s read %d: %v", call, ids, err)
		}
	})
	each(unlockable, func(t *testing.T, tx *gorm.DB, call string, _ []int64, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "no row lock reaches its rows") {
			t.Errorf("%s: %v", call, err)
		}
		stand.Must(t, tx.Exec("SELECT 1").Error)
	})
	each(refusedByServer, func(t *testing.T, _ *gorm.DB, call string, _ []int64, err error) {
		t.Helper()
		if err == nil && !keyed[call] { // whose condition makes of an outer join an inner one
			t.Errorf("%s is no error", call)
		}
	})
}

// lockedLetters are the letters that somebody else has locked.
func lockedLetters(t *testing.T, rival stand.RowRival) []int64 {
	t.Helper()
	rows, err := rival.Conn.Query(t.Context(), "SELECT id FROM letters WHERE id NOT IN (SELECT id FROM letters FOR UPDATE SKIP LOCKED)")
	stand.Must(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	stand.Must(t, err)
	return ids
}

// TestRowLockOfAnyFrom_model: where a list of columns names no table, those are meant whose model is read.
func TestRowLockOfAnyFrom_model(t *testing.T) {
	t.Parallel()
	db, rival := stand.Open(t), stand.NewRowRival(t)
	stand.Must(t, db.Exec(letters).Error)
	for name, read := range map[string]reading{
		"WITH":                    table("(WITH w AS (SELECT id AS box_id, name FROM boxes) SELECT * FROM letters JOIN w USING (box_id)) AS letters"),
		"a function":              table("(SELECT * FROM letters JOIN (SELECT id AS key FROM all_letters() AS a) f ON f.key = letters.id) AS letters"),
		"an expression":           table("(WITH w AS (SELECT * FROM boxes) SELECT l.*, coalesce(w.name, '') AS name FROM letters l JOIN w ON w.id = l.box_id) AS letters"),
		"WITH in front and comma": withBefore("WITH w AS (SELECT id AS b FROM boxes)", table("letters, w")),
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			err := read(tx).Clauses(gormlock.SkipLocked()).Find(&[]letter{}).Error
			if locked := lockedLetters(t, rival); err != nil || len(locked) != 4 {
				t.Errorf("%s: locked %d: %v", name, locked, err)
			}
		})
		stand.InTx(t, db, func(tx *gorm.DB) {
			if err := read(tx).Clauses(gormlock.SkipLocked()).Find(&[]map[string]any{}).Error; err == nil || !strings.Contains(err.Error(), "no row lock reaches its rows") {
				t.Errorf("%s, without a model: %v", name, err)
			}
		})
	}
}

// TestRowLockOfAnyFrom_of: it is about the rows that Of names.
func TestRowLockOfAnyFrom_of(t *testing.T) {
	t.Parallel()
	db, rival := stand.Open(t), stand.NewRowRival(t)
	stand.Must(t, db.Exec(letters).Error)
	read := func(tx *gorm.DB, of ...string) error {
		return tx.Table("boxes AS b").Joins("JOIN (SELECT * FROM letters) AS l ON l.box_id = b.id").Joins(`JOIN (WITH c AS (SELECT * FROM letters) SELECT * FROM c) AS "W" ON "W".id = l.id`).
			Joins("JOIN generate_series(1, 4) AS g (n) ON g.n = l.id").Clauses(gormlock.SkipLocked(gormlock.Of(of...))).Find(&[]map[string]any{}).Error
	}
	for _, of := range [][]string{{"b"}, {"l"}, {"b", "l"}} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.Must(t, read(tx, of...))
			if locked := lockedLetters(t, rival); len(locked) == 4 != slices.Contains(of, "l") {
				t.Errorf("Of(%q) locked %d", of, locked)
			}
		})
	}
	for _, of := range [][]string{{"W"}, {"l", "W"}, {"g"}, {"b", "g"}, {"c"}} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			if err := read(tx, of...); err == nil {
				t.Errorf("Of(%q) is no error", of)
			}
		})
	}
	stand.InTx(t, db, func(tx *gorm.DB) {
		err := tx.Joins("JOIN (WITH c AS (SELECT * FROM boxes) SELECT * FROM c) AS w ON w.id = letters.box_id").
			Clauses(gormlock.SkipLocked(gormlock.Of("letters", "w"))).Find(&[]letter{}).Error
		if err == nil || !strings.Contains(err.Error(), "no row lock reaches its rows") {
			t.Errorf("Of the model and another: %v", err)
		}
	})
}

// TestClaimFromAnyFrom: two claims do not get one row, whatever a scope writes into FROM.
func TestClaimFromAnyFrom(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.Exec(letters).Error)
	claim := func(from string) ([]letter, error) {
		return gormlock.Claim[letter](db, 1, map[string]any{"subject": "taken"}, func(q *gorm.DB) *gorm.DB {
			return q.Clauses(clause.From{Tables: []clause.Table{{Name: from, Raw: true}}}).Where("letters.subject <> 'taken'").Order("letters.id")
		})
	}
	for _, from := range []string{"(WITH c AS (SELECT * FROM letters) SELECT * FROM c) AS letters", "all_letters() AS letters", "other_letters AS letters"} {
		if rows, err := claim(from); err == nil || len(rows) > 0 || !strings.Contains(err.Error(), "no row lock reaches its rows") {
			t.Errorf("%s: claimed %v: %v", from, rows, err)
		}
	}
	if rows, err := claim("letters"); err != nil || len(rows) != 1 {
		t.Errorf("claimed %v: %v", rows, err)
	}
}

// TestRowLockOfForeignTables: a wrapper that sends the lock to its server is locked through; of others nothing is known.
func TestRowLockOfForeignTables(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	var known int
	stand.Must(t, db.Raw("SELECT count(*) FROM pg_available_extensions WHERE name IN ('postgres_fdw', 'file_fdw')").Scan(&known).Error)
	if known < 2 {
		t.Skip("the server has no foreign data wrappers")
	}
	config, err := pgx.ParseConfig(dsn)
	stand.Must(t, err)
	stand.Must(t, db.Exec(letters+`; CREATE EXTENSION postgres_fdw; CREATE EXTENSION file_fdw;
		CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '`+config.Host+`', port '`+strconv.Itoa(int(config.Port))+`', dbname '`+config.Database+`');
		CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user '`+config.User+`');
		CREATE FOREIGN TABLE far_letters (id bigint, box_id bigint, subject text, version bigint) SERVER here OPTIONS (table_name 'letters');
		CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
		CREATE FOREIGN TABLE filed (id bigint) SERVER files OPTIONS (program 'echo 1');
		CREATE VIEW filed_too AS SELECT * FROM filed;
		CREATE TABLE years (id bigint, version bigint) PARTITION BY LIST (id);
		CREATE TABLE year_1 PARTITION OF years FOR VALUES IN (1); INSERT INTO years VALUES (1)`).Error)
	rival := stand.RowRival{Conn: pgtest.Conn(t, pgtest.Through(dsn))}
	lock := gormlock.RowLock(gormlock.ForUpdate)
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.Must(t, tx.Table("far_letters").Clauses(lock).Find(&[]letter{}).Error)
		stand.Equal(t, "rows locked", len(lockedLetters(t, rival)), 4)
	})
	for _, bounded := range []clause.Expression{gormlock.SkipLocked(), gormlock.RowLock(gormlock.ForUpdate, gormlock.Try()), gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second))} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			if err := tx.Table("far_letters").Clauses(bounded).Find(&[]letter{}).Error; err == nil || !strings.Contains(err.Error(), "whose server is not told of Try") {
				t.Errorf("%#v: %v", bounded, err)
			}
		})
	}
	refused := func(table string) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			if err := tx.Table(table).Clauses(lock).Find(&[]map[string]any{}).Error; err == nil || !strings.Contains(err.Error(), "no row lock reaches its rows") {
				t.Errorf("%s: %v", table, err)
			}
		})
	}
	refused("filed")
	refused("filed_too")
	refused("(SELECT * FROM filed) AS f")
	stand.InTx(t, db, func(tx *gorm.DB) { stand.Must(t, tx.Table("year_1").Clauses(lock).Find(&[]map[string]any{}).Error) })
	stand.Must(t, db.Exec("CREATE FOREIGN TABLE year_2 PARTITION OF years FOR VALUES IN (2) SERVER files OPTIONS (program 'echo 2,1', format 'csv')").Error)
	refused("years")
}

// TestRowLockAsksOnceOfAName: what a FROM in text is costs one query for each of its tables and functions, the first time.
func TestRowLockAsksOnceOfAName(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.Exec(letters).Error)
	asked := 0
	for range 3 {
		stand.InTx(t, db, func(tx *gorm.DB) {
			recorded, recorder := stand.Recorded(tx)
			stand.Must(t, recorded.Table("(SELECT * FROM letters l, generate_series(1, 1) AS g (n)) AS letters").Clauses(gormlock.SkipLocked()).Find(&[]map[string]any{}).Error)
			asked += recorder.Asked
		})
	}
	stand.Equal(t, "questions", asked, 2)
}

// TestRowLockOfAnyFrom_computedModel: rows of the model that a function has computed are not locked by a lock on what stands beside it.
func TestRowLockOfAnyFrom_computedModel(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.Exec(letters).Error)
	stand.Must(t, db.Exec(`CREATE FUNCTION computed() RETURNS TABLE (id bigint, box_id bigint, subject text, version bigint)
		LANGUAGE sql STABLE AS 'SELECT id, box_id, subject, version FROM letters'`).Error)
	for name, read := range map[string]reading{
		"by their columns": func(tx *gorm.DB) *gorm.DB {
			return tx.Table("boxes b JOIN computed() AS l ON l.box_id = b.id").Select("l.*")
		},
		"by the name of the table": table("boxes b JOIN computed() AS letters ON letters.box_id = b.id"),
		"by both": func(tx *gorm.DB) *gorm.DB {
			return tx.Table("boxes b JOIN computed() AS letters ON letters.box_id = b.id").Select("letters.*")
		},
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			if err := read(tx).Clauses(gormlock.SkipLocked()).Find(&[]letter{}).Error; err == nil || !strings.Contains(err.Error(), "no row lock reaches its rows") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
