package observe

import "context"

// Multi passes each event to all observers, in their order. A panic in one is caught,
// as by [Contain], and the others still get the event. Nil observers are left out;
// Multi of none observes nothing, and costs an emitter nothing.
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
	if len(all) == 1 {
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
