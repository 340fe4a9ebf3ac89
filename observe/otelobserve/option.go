package otelobserve

import (
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// Option changes what [New] records. The set is closed.
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

type config struct {
	meters  metric.MeterProvider
	label   func(key string) string
	noSpans bool
}

func newConfig(opts []Option) (config, error) {
	c := config{meters: otel.GetMeterProvider()}
	for _, o := range opts {
		if o == nil {
			return c, errors.New("gormlock: otelobserve: a nil option")
		}
		o.apply(&c)
	}
	return c, nil
}

// MeterProvider makes the instruments with p. Default: the global one, which may be set later.
func MeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) { c.meters = p })
}

// KeyLabel puts the attribute gormlock.key on metrics: the result of label for the name of
// a key, or nothing if that is "". Let label return few values, because each is a time
// series of its own: strip the 42 of invoice/42. It is called for each event, from many
// goroutines. Default: metrics do not name keys; span events do.
func KeyLabel(label func(key string) string) Option {
	return option(func(c *config) { c.label = label })
}

// WithoutSpanEvents records metrics only. Default: the span of the context gets an event,
// if it records.
func WithoutSpanEvents() Option {
	return option(func(c *config) { c.noSpans = true })
}
