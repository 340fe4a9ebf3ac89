package lease

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/lockkey"
)

// Holder is who has a lease.
type Holder struct {
	Owner   string        // as it named itself
	Data    []byte        // what it left with [Data]
	Held    time.Duration // since it was acquired
	Remains time.Duration // until it runs out, if it is not renewed
}

// Holder tells who has the lease on key, this process or another; held is false when it is
// free. A lease that was released before its [AtLeast] is still its holder's. The answer is that of a
// moment: the holder may be another by the time it is read.
func (m *Manager) Holder(ctx context.Context, key lockkey.Key) (h Holder, held bool, err error) {
	r, err := m.newRequest(key, time.Second, nil)
	if err != nil {
		return Holder{}, false, err
	}
	args := []any{r.token.Space, r.token.ID}
	if m.config.shedlock {
		args = []any{r.row}
	}
	_, err = m.query(ctx, m.sql.holder, args, func(rows *sql.Rows) error {
		held = true
		var since, remains int64
		if err := rows.Scan(&h.Owner, &h.Data, &since, &remains); err != nil {
			return err
		}
		h.Held, h.Remains = time.Duration(since)*time.Microsecond, time.Duration(remains)*time.Microsecond
		return nil
	})
	if err != nil {
		return Holder{}, false, fmt.Errorf("gormlock: lease %s: look for its holder: %w", key, explain(err))
	}
	if m.config.shedlock {
		h.Owner = shedlockOwner(h.Owner)
	}
	return h, held, nil
}
