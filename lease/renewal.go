package lease

import "context"

// renewals renew the leases of a manager, all that are due soon in one statement.
type renewals struct {
	store      *store
	holdings   *holdings
	background *background
}

// renewDue renews leases. If that fails, it makes sure that they are tried again in time.
func (r *renewals) renewDue(batch []*Lease) {
	within := batch[0].ttl
	for _, l := range batch {
		within = min(within, l.ttl)
	}
	ctx, cancel := context.WithTimeout(r.background.ctx, within/2)
	defer cancel()
	_, err := r.renew(ctx, batch)
	r.holdings.renewalEnded(batch, err != nil)
}

// renew renews leases in one statement, and marks as lost those that are no longer in the table. locked is how many rows
// it could not look at.
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
