package lease

import (
	"context"
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
	r, err := newRequest(m.store.table, key, time.Second, nil)
	if err != nil {
		return Holder{}, false, err
	}
	h, held, err = m.store.holder(ctx, claim{token: r.token, row: r.row})
	if err != nil {
		return Holder{}, false, fmt.Errorf("gormlock: lease %s: look for its holder: %w", key, explain(err))
	}
	return h, held, nil
}
