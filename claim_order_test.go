package gormlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// ordered has columns of many kinds to order by.
type ordered struct {
	ID       int64
	State    string
	Priority int16
	Due      time.Time
	Day      time.Time `gorm:"type:date"`
	Digits   int       `gorm:"type:text"`
	Exact    int       `gorm:"type:numeric"`
	Note     string
	Doubled  int64 `gorm:"->;type:bigint GENERATED ALWAYS AS (attempts * -2) STORED"`
	Attempts int64
	Odd      int      `gorm:"column:Odd one"`
	Queue    *ordered `gorm:"constraint:-"`
	QueueID  *int64
	Inner    *innermost `gorm:"embedded"`

	UpdatedAt time.Time
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type innermost struct{ Depth int64 }

// TestClaimOrder: rows come in the order that the server would give them, whoever sorts them.
func TestClaimOrder(t *testing.T) {
	t.Parallel()
	const server, here = true, false
	db := versioned(t, []any{&ordered{}})
	mustDo(t, db.Exec(`insert into ordereds (id, state, priority, due, day, digits, note, exact, attempts, "Odd one", depth, updated_at)
		select i, 'ready', case when i % 5 > 0 then i % 3 - 1 end,
			case when i % 7 > 0 then timestamptz '2000-01-01' + (i * 7919 % 13 - 6) * interval '1000.000001 seconds' + (i % 3 - 1) * interval '4710 years' end,
			date '2024-01-01' + i % 4, i, chr(97 + i % 5), i, i * 31 % 7, i * 17 % 10, nullif(i % 3, 0), now() - i * interval '1 minute'
		from generate_series(1, 40) i`))
	mustDo(t, db.Exec(`insert into ordereds (id, due) values (50, '294276-12-31'), (51, '4713-01-01 BC')`))
	mustDo(t, db.Exec("update ordereds set state = 'ready', queue_id = 52 - id, version = id % 3 + 1"))
	take := map[string]any{"state": "taken"}
	claimed := func(db *gorm.DB, assign map[string]any, order func(*gorm.DB) *gorm.DB) (ids []int64, text string) {
		tx := db.Begin()
		defer tx.Rollback()
		recording, recorder := recorded(tx)
		rows, err := gormlock.Claim[ordered](recording, 12, assign, func(q *gorm.DB) *gorm.DB { return order(q.Where("ordereds.state = 'ready'")) })
		must(t, err)
		for _, row := range rows {
			ids = append(ids, row.ID)
			if row.ID%3 == 0 && row.Inner != nil {
				t.Error("something was read into", row)
			}
		}
		return ids, recorder.seen()[0]
	}
	by := func(orders ...any) func(*gorm.DB) *gorm.DB {
		return func(q *gorm.DB) *gorm.DB {
			for _, order := range orders {
				q = q.Order(order)
			}
			return q
		}
	}
	column := func(name string, descending bool) clause.OrderByColumn {
		return clause.OrderByColumn{Column: clause.Column{Name: name}, Desc: descending}
	}
	joined := func(order string) func(*gorm.DB) *gorm.DB {
		return func(q *gorm.DB) *gorm.DB {
			return q.Joins("LEFT JOIN ordereds q ON q.id = ordereds.queue_id").Order(order)
		}
	}
	claimed(db, take, by("id")) // tells the next what the columns hold
	for _, c := range []struct {
		by       func(*gorm.DB) *gorm.DB
		told     bool
		assigned string
	}{
		{by: by("id"), told: here},
		{by: by("id ASC"), told: here},
		{by: by("priority DESC, id"), told: here},
		{by: by("priority,id desc"), told: here},
		{by: by("  Priority   DESC ,\tid "), told: here},
		{by: by(`"priority" desc, "ordereds"."id"`), told: here},
		{by: by("ordereds.priority", "Ordereds.id DESC"), told: here},
		{by: by("due, id"), told: here},
		{by: by("due desc, id"), told: here},
		{by: by("day desc, due, id desc"), told: here},
		{by: by("depth, id"), told: here},
		{by: by("depth desc, id"), told: here},
		{by: by(column("priority", true), column("id", false)), told: here},
		{by: by(clause.OrderByColumn{Column: clause.Column{Table: clause.CurrentTable, Name: "Odd one"}}, "id"), told: here},
		{by: by(`"Odd one" desc, id`), told: server},
		{by: by("attempts, id"), told: here},
		{by: joined("ordereds.id DESC"), told: here},
		{by: by("attempts, id"), assigned: "attempts", told: server},
		{by: by("priority DESC", "attempts desc, id"), assigned: "Attempts", told: server},
		{by: by("updated_at DESC"), told: server},
		{by: by("version, id"), told: server},
		{by: by("doubled, id"), told: server},
		{by: by("doubled, id"), assigned: "attempts", told: server},
		{by: by("digits"), told: server},
		{by: by("exact"), told: server},
		{by: by("note, id"), told: server},
		{by: by(`note COLLATE "C" DESC, id`), told: server},
		{by: by("-id"), told: server},
		{by: by("id % 7, id"), told: server},
		{by: by("priority DESC NULLS LAST, id"), told: server},
		{by: by("priority\tDESC, id"), told: server},
		{by: by("priority USING >, id"), told: server},
		{by: by("coalesce(priority, id), id"), told: server},
		{by: by(clause.OrderByColumn{Column: clause.Column{Name: "priority, id", Raw: true}, Desc: true}), told: server},
		{by: by(clause.OrderByColumn{Column: clause.Column{Name: clause.PrimaryKey}, Desc: true}), told: server},
		{by: by(clause.OrderBy{Expression: clause.Expr{SQL: "id % ?, id", Vars: []any{5}}}), told: server},
		{by: joined("q.id, ordereds.id"), told: server},
	} {
		assign := map[string]any{"state": "taken"}
		if c.assigned != "" {
			assign[c.assigned] = gorm.Expr("100 - attempts")
		}
		var want []int64
		mustDo(t, db.Model(&ordered{}).Scopes(c.by).Where("ordereds.state = 'ready'").Limit(12).Pluck("ordereds.id", &want))
		found, text := claimed(db, assign, c.by)
		equal(t, "order of "+text, fmt.Sprint(found), fmt.Sprint(want))
		equal(t, "who sorts "+text, strings.Contains(text, "gormlock_place"), c.told)
	}
	t.Run("of a column that becomes another", func(t *testing.T) {
		mustDo(t, db.Exec("alter table ordereds alter priority type text"))
		for i := range 3 {
			if _, text := claimed(db, take, by("priority desc")); i == 2 && !strings.Contains(text, "gormlock_place") {
				t.Error("it is still sorted as a number:", text)
			}
		}
	})
	t.Run("of another table", func(t *testing.T) {
		mustDo(t, db.Exec("create table others (like ordereds including all); insert into others (id, state, priority) select i, 'ready', -i from generate_series(1, 20) i; alter table others alter priority type text"))
		for range 2 {
			found, err := gormlock.Claim[ordered](db.Table("others"), 3, take, func(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready'").Order(`priority desc`) })
			must(t, err)
			for i, want := range []int16{-9, -8, -7} {
				equal(t, "priority", found[i].Priority, want)
			}
			mustDo(t, db.Exec("update others set state = 'ready'"))
		}
	})
}
