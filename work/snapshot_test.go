package work_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
)

// A renewal of the lease changes the row after the snapshot of a handler's transaction. The error of Complete says that, and what to do.
func TestComplete_behindASnapshot(t *testing.T) {
	t.Parallel()
	db := open(t)
	mail := enqueue(t, db, "x")[0]
	drain(t, worker(t, db, func(ctx context.Context, m *Mail) error {
		err := gormlock.Transaction(db.WithContext(ctx), func(tx *gorm.DB) error {
			if err := tx.First(&Mail{}).Error; err != nil {
				return err
			}
			must(t, db.Exec("UPDATE mails SET claimed_until = claimed_until + interval '1 s'").Error)
			return work.Complete(tx, m)
		}, gormlock.Isolation(sql.LevelRepeatableRead))
		if !errors.Is(err, gormlock.ErrStale) || !strings.Contains(err.Error(), "READ COMMITTED") || !strings.Contains(err.Error(), "Lease") {
			t.Errorf("%v", err)
		}
		return err
	}, work.Backoff(func(int) time.Duration { return time.Hour })))
	if m := reload(t, db, mail.ID); m.State != "later" || !strings.Contains(m.LastError, "READ COMMITTED") {
		t.Errorf("%s, %q", m.State, m.LastError)
	}
}
