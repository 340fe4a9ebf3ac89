package claims_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// document has columns that are no numbers of Go's.
type document struct {
	ID     int64
	Code   string
	Data   string    `gorm:"type:jsonb"`
	Price  string    `gorm:"type:money"`
	Weight float64   `gorm:"type:real"`
	Due    time.Time `gorm:"type:date"`
	Count  int
	Ok     bool
	Done   bool
}

// A condition means for Claim and WithSkipLocked what it means for a plain query, in each protocol, for each of many values: the
// same rows, or an error too.
func TestConditions_meanWhatTheyMeanInAQuery(t *testing.T) {
	t.Parallel()
	modes := map[string][]pgtest.Option{
		"as it comes": nil, "PrepareStmt": {pgtest.PrepareStmt()}, "simple protocol": {pgtest.SimpleProtocol()}, "exec": {pgtest.Param("default_query_exec_mode", "exec")},
	}
	conditions := map[string]func(n int) []any{
		"data->'n' = ?":                   func(n int) []any { return []any{n} },
		"data->'ok' = ?":                  func(n int) []any { return []any{n%2 == 0} },
		"data->>'n' = ?":                  func(n int) []any { return []any{n} },
		"data->>'n' IN ?":                 func(n int) []any { return []any{[]int{n, n + 1}} },
		"data @> ?":                       func(n int) []any { return []any{n} },
		"code = ?":                        func(n int) []any { return []any{n} },
		"code > ?":                        func(n int) []any { return []any{n} },
		"code LIKE ?":                     func(n int) []any { return []any{n} },
		"count::text = ?":                 func(n int) []any { return []any{n} },
		"price = ?":                       func(n int) []any { return []any{n} },
		"weight = ?":                      func(n int) []any { return []any{16777216 + n} },
		"count = ? AND ok = ?":            func(n int) []any { return []any{n, n%2 == 0} },
		"count IN ? OR NOT ok = ?":        func(n int) []any { return []any{[]int{n}, true} },
		"count + 1 = ?":                   func(n int) []any { return []any{n} },
		"to_jsonb(code) ->> ? IS NULL":    func(n int) []any { return []any{n} },
		"due = date '2026-01-01' + ?":     func(n int) []any { return []any{n} },
		"substring(code, ?) = ''":         func(n int) []any { return []any{n} },
		"count BETWEEN ? AND ?":           func(n int) []any { return []any{n, n + 1} },
		"ok = ?":                          func(n int) []any { return []any{n} },
		"(count, ok) = (?, ?)":            func(n int) []any { return []any{n, true} },
		"count = (SELECT max(?::int))":    func(n int) []any { return []any{n} },
		"CASE WHEN count = ? THEN ok END": func(n int) []any { return []any{n} },
	}
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&document{}}, opts...)
			plain := db.Session(&gorm.Session{NewDB: true})
			stand.Must(t, db.Exec(`INSERT INTO documents (code, data, price, weight, due, count, ok, done)
				SELECT n::text, jsonb_build_object('n', n, 'ok', n % 2 = 0), n::numeric::money, 16777216 + n, date '2026-01-01' + n, 1 * n, n % 2 = 0, FALSE FROM generate_series(1, 12) n`).Error)
			for query, args := range conditions {
				for n := range 12 {
					where := func(q *gorm.DB) *gorm.DB { return q.Where(query, args(n)...).Order("id") }
					var want, locked []int64
					plainErr := where(plain.Model(&document{})).Pluck("id", &want).Error
					claimed, claimErr := gormlock.Claim[document](db, 20, map[string]any{"done": false}, where)
					lockErr := db.Transaction(func(tx *gorm.DB) error {
						return where(tx.Model(&document{}).Scopes(gormlock.WithSkipLocked())).Pluck("id", &locked).Error
					})
					if (plainErr != nil) != (claimErr != nil) || (plainErr != nil) != (lockErr != nil) {
						t.Errorf("%s with %v: %v, claimed %v, locked %v", query, args(n), plainErr, claimErr, lockErr)
						break
					}
					if plainErr == nil && (len(claimed) != len(want) || len(locked) != len(want)) {
						t.Errorf("%s with %v finds %d rows, claims %d, locks %d", query, args(n), len(want), len(claimed), len(locked))
					}
				}
			}
		})
	}
}

type alarm struct {
	ID    int64
	State string
	Score int
	RunAt time.Time

	ToldAt string // of a table that a migration in SQL made
}

// A word for a time means the time at which each statement runs.
func TestConditions_ofWordsForTimes(t *testing.T) {
	t.Parallel()
	for mode, opts := range map[string][]pgtest.Option{"as it comes": nil, "PrepareStmt": {pgtest.PrepareStmt()}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&alarm{}}, append([]pgtest.Option{pgtest.MaxConns(1)}, opts...)...)
			stand.Must(t, db.Exec("ALTER TABLE alarms ALTER told_at TYPE timestamptz USING now()").Error)
			for range 8 {
				stand.Must(t, db.Exec("INSERT INTO alarms (state, run_at, told_at) VALUES ('ready', clock_timestamp(), clock_timestamp())").Error)
				for query, now := range map[string]string{
					"state = ? AND run_at <= ?": "now", "state = ? AND run_at <= ?::timestamptz": "now()", "state = ? AND run_at <@ ?::tstzrange": "(,now]",
					"state = ? AND told_at <= ?": "NOW",
				} {
					rows, err := gormlock.Claim[alarm](db, 100, map[string]any{"score": 1}, func(q *gorm.DB) *gorm.DB { return q.Where(query, "ready", now) })
					var n int64
					stand.Must(t, db.Model(&alarm{}).Count(&n).Error)
					if err != nil || int64(len(rows)) != n {
						t.Errorf("%s: %d of %d are claimed: %v", query, len(rows), n, err)
					}
				}
			}
		})
	}
}

// A number is compared with the column of another table as that column has it.
func TestConditions_ofOtherTables(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&alarm{}})
	stand.Must(t, db.Exec("CREATE TABLE attrs (alarm_id bigint, score jsonb); INSERT INTO attrs VALUES (1, '5')").Error)
	stand.Must(t, db.Create(&alarm{ID: 1, State: "ready", Score: 5}).Error)
	for _, query := range []string{
		"EXISTS (SELECT 1 FROM attrs a WHERE a.alarm_id = alarms.id AND a.score = ?)",
		"id IN (SELECT alarm_id FROM attrs WHERE score = ?)",
		"alarms.score = ?", "score = ?",
	} {
		rows, err := gormlock.Claim[alarm](db, 10, map[string]any{"state": "ready"}, func(q *gorm.DB) *gorm.DB { return q.Where(query, 5) })
		if err != nil || len(rows) != 1 {
			t.Errorf("%s claims %d rows: %v", query, len(rows), err)
		}
	}
}
