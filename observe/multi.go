package observe

import "context"

// Multi tells each of observers, in their order. A panic in one is contained, as by
// [Contain], and the others are told. Those that are nil are left out; Multi of none is
// nil.
func Multi(observers ...Observer) Observer {
	var all multi
	for _, o := range observers {
		switch o := Contain(o).(type) {
		case nil:
		case multi:
			all = append(all, o...)
		default:
			all = append(all, o)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// multi holds contained observers.
type multi []Observer

func (m multi) Observe(ctx context.Context, e Event) {
	for _, o := range m {
		o.Observe(ctx, e)
	}
}
