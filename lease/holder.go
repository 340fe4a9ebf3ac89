package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/lockkey"
)

// Holder is who has a lease.
type Holder struct {
	Owner   string        // as it named itself
	Data    []byte        // what it left with [Data]
	Held    time.Duration // since it was acquired
	Remains time.Duration // until it runs out, if it is not renewed
}

// Holder returns who holds the lease on key, this process or another; held is false if it is free. A
// lease that was released before its [AtLeast] still belongs to its holder. The holder may have
// changed by the time you read the answer.
func (m *Manager) Holder(ctx context.Context, key lockkey.Key) (h Holder, held bool, err error) {
	r, err := newRequest(m.store.table, key, time.Second, nil)
	if err != nil {
		return Holder{}, false, err
	}
	asking, cancel := context.WithTimeout(ctx, r.within())
	defer cancel()
	h, held, err = m.store.holder(asking, claim{token: r.token, row: r.row})
	if err != nil {
		return Holder{}, false, cause.Add(ctx, fmt.Errorf("gormlock: lease %s: look for its holder: %w", key, explain(unanswered(ctx, asking, r.within(), err))))
	}
	return h, held, nil
}
