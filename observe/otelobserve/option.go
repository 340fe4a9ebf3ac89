package otelobserve

import (
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// Option changes what [New] records. The set is closed.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

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
		if err := o.apply(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// MeterProvider makes the instruments with p. Default: the global one, which may be set later.
func MeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) error {
		if p == nil {
			return errors.New("gormlock: otelobserve: MeterProvider(nil), leave it out for the global one")
		}
		c.meters = p
		return nil
	})
}

// KeyLabel puts the attribute gormlock.key on metrics: the result of label for the name of
// a key, or nothing if that is "". Let label return few values, because each is a time
// series of its own: strip the 42 of invoice/42. It is called for each event, from many
// goroutines. Default: metrics do not name keys; span events do.
func KeyLabel(label func(key string) string) Option {
	return option(func(c *config) error {
		if label == nil {
			return errors.New("gormlock: otelobserve: KeyLabel(nil), leave it out to not name keys")
		}
		c.label = label
		return nil
	})
}

// WithoutSpanEvents records metrics only. Default: the span of the context gets an event,
// if it records.
func WithoutSpanEvents() Option {
	return option(func(c *config) error {
		c.noSpans = true
		return nil
	})
}
