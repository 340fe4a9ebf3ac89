package lease

import (
	"context"

	"github.com/gormlock/gormlock/internal/sift"
)

// renewals renew the leases of a manager, all that are due soon in one statement.
type renewals struct {
	store      *store
	holdings   *holdings
	background *background
}

// renewDue renews leases. If that fails for some, they are tried again in time. A row that the server refuses to change does not keep the other
// leases from being renewed.
func (r *renewals) renewDue(batch []*Lease) {
	within := batch[0].ttl
	for _, l := range batch {
		within = min(within, l.ttl)
	}
	ctx, cancel := context.WithTimeout(r.background.ctx, within/2)
	defer cancel()
	renew := func(part []*Lease) error {
		_, err := r.renew(ctx, part)
		return err
	}
	sift.Parts(ctx, batch, renew, func(part []*Lease, err error) bool {
		r.holdings.renewalEnded(part, err)
		return true
	})
}

// renew renews leases in one statement, and marks those as lost that are no longer in the table. locked is how many rows it could not check.
func (r *renewals) renew(ctx context.Context, batch []*Lease) (locked int, err error) {
	items := make([]item, len(batch))
	for i, l := range batch {
		items[i] = item{l.claim, l.ttl}
	}
	found, sent, err := r.store.renew(ctx, items)
	if err != nil {
		return 0, err
	}
	for _, tell := range r.holdings.renewed(batch, found, sent) {
		tell()
	}
	for _, f := range found {
		if f == rowLocked {
			locked++
		}
	}
	return locked, nil
}
