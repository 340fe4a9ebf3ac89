package work

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// QueueStats says how many jobs of a queue there are, without those that are done.
type QueueStats struct {
	Queue                       string
	Ready, Running, Later, Dead int64
	Oldest                      time.Duration // how long the oldest ready job has waited
}

// Stats counts the jobs of a model's table by queue, in the order of their names. A queue with only done jobs is left
// out. A db with conditions, clauses or scopes is an error, because they would be dropped.
func Stats(ctx context.Context, db *gorm.DB, model any) ([]QueueStats, error) {
	t, err := usable(ctx, db, model, "Stats", "give it the db or the transaction itself, and take locks with gormlock.AcquireXactLock")
	if err != nil {
		return nil, err
	}
	// Each part has its own index.
	part := func(state, oldest string) string {
		return `SELECT {Queue} AS queue, '` + state + `' AS state, count(*) AS n, ` + oldest + ` AS oldest FROM {table} WHERE {State} = '` + state + `'{live} GROUP BY 1`
	}
	var counts []struct { // with the names of the query, whatever the program's NamingStrategy is
		Queue   string        `gorm:"column:queue"`
		Ready   int64         `gorm:"column:ready"`
		Running int64         `gorm:"column:running"`
		Later   int64         `gorm:"column:later"`
		Dead    int64         `gorm:"column:dead"`
		Oldest  time.Duration `gorm:"column:oldest"`
	}
	// The longest time.Duration is 292 years. PostgreSQL 14 to 16 have no difference of a time and infinity.
	const seconds = "CASE WHEN isfinite(min(oldest)) THEN LEAST(GREATEST(EXTRACT(EPOCH FROM now() - min(oldest)), 0), 9223372036) WHEN min(oldest) < now() THEN 9223372036 END"
	err = statement.Beside(db).WithContext(ctx).Raw(t.sql(`SELECT queue,
		COALESCE(sum(n) FILTER (WHERE state = 'ready'), 0)::bigint AS ready, COALESCE(sum(n) FILTER (WHERE state = 'running'), 0)::bigint AS running,
		COALESCE(sum(n) FILTER (WHERE state = 'later'), 0)::bigint AS later, COALESCE(sum(n) FILTER (WHERE state = 'dead'), 0)::bigint AS dead,
		COALESCE(` + seconds + ` * 1e9, 0)::bigint AS oldest FROM (` +
		part(ready, "min({RunAt})") + ` UNION ALL ` + part(running, "NULL::timestamptz") + ` UNION ALL ` + part(later, "NULL::timestamptz") +
		` UNION ALL ` + part(dead, "NULL::timestamptz") + `) AS parts GROUP BY queue ORDER BY queue`)).Scan(&counts).Error
	var stats []QueueStats
	for _, c := range counts {
		stats = append(stats, QueueStats(c))
	}
	return stats, err
}

// Requeue makes dead jobs ready again, from attempt 1 on, and returns how many. Jobs that are not dead stay as they are.
// No ids is an error. So is a db with conditions, clauses or scopes, because they would be dropped.
func Requeue(ctx context.Context, db *gorm.DB, model any, ids ...int64) (int64, error) {
	t, err := usable(ctx, db, model, "Requeue", "give it the db or the transaction itself, the ids of the jobs you mean, and take locks with gormlock.AcquireXactLock")
	if err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, optionError("Requeue names no ids: Stats says how many are dead, and the table which")
	}
	var again []struct {
		ID       int64  `gorm:"column:id"`
		Queue    string `gorm:"column:queue"`
		Priority int    `gorm:"column:priority"`
	}
	db = db.WithContext(ctx)
	err = journal.SendOnce(db.Session(&gorm.Session{NewDB: true}), func(db *gorm.DB) error {
		return db.Raw(t.sql(`UPDATE {table} SET {State} = 'ready', {Attempts} = 0, {RunAt} = now(), {ClaimedBy} = '', {ClaimedUntil} = NULL,
			{Version} = {Version} + 1, {UpdatedAt} = now() WHERE {ID} = ANY(?::bigint[]) AND {State} = 'dead'{live}
			RETURNING {ID} AS id, {Queue} AS queue, {Priority} AS priority`), array(ids)).Scan(&again).Error
	})
	if err != nil {
		return 0, err
	}
	heard := hints{}
	for _, j := range again {
		heard.add(level{j.Queue, j.Priority}, j.ID, false)
	}
	if len(heard) > 0 {
		announceAfter(db, t, heard)
	}
	return int64(len(again)), nil
}

func usable(ctx context.Context, db *gorm.DB, model any, call, cure string) (*table, error) {
	if err := install.Usable(db); err != nil {
		return nil, err
	}
	if err := mustBeBare(db, call, cure); err != nil {
		return nil, err
	}
	t, err := tableOf(statement.Beside(db).WithContext(ctx), model)
	if err != nil {
		return nil, err
	}
	return t, t.allowed()
}
