package otelobserve

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gormlock/gormlock/observe"
)

// scope is the instrumentation scope of all instruments.
const scope = "github.com/gormlock/gormlock/observe/otelobserve"

// seconds are the buckets of durations: those of database calls, and longer.
var seconds = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300}

// Observer records events. [New] makes one.
type Observer struct {
	config config

	acquisitions metric.Int64Counter
	wait         metric.Float64Histogram
	hold         metric.Float64Histogram
	losses       metric.Int64Counter
	refusals     metric.Int64Counter
	claims       metric.Int64Counter
	rows         metric.Int64Counter
	retries      metric.Int64Counter
	givenUp      metric.Int64Counter
	attempts     metric.Int64Counter
	handling     metric.Float64Histogram
	takeovers    metric.Int64Counter
}

// New returns an observer for the option WithObserver of gormlock, and Observer of sessionlock and lease. One serves them
// all. It fails when the meter provider refuses an instrument, or an option is nil.
func New(opts ...Option) (*Observer, error) {
	config, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	o := &Observer{config: config}
	meter := o.config.meters.Meter(scope)
	var errs []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	duration := func(name, description string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(seconds...))
		errs = append(errs, err)
		return h
	}
	o.acquisitions = counter("gormlock.lock.acquisitions", "{acquisition}", "Attempts to take a lock, by outcome.")
	o.wait = duration("gormlock.lock.wait.duration", "How long attempts to take a lock took, by outcome.")
	o.hold = duration("gormlock.lock.hold.duration", "How long locks were held that were released or lost.")
	o.losses = counter("gormlock.lock.losses", "{lock}", "Locks that were lost while they were held.")
	o.refusals = counter("gormlock.write.refusals", "{write}", "Writes refused because somebody else was first, by reason.")
	o.claims = counter("gormlock.claims", "{claim}", "Calls that claimed rows, or found none.")
	o.rows = counter("gormlock.claim.rows", "{row}", "Rows that were claimed.")
	o.retries = counter("gormlock.transaction.retries", "{retry}", "Transactions that began again.")
	o.givenUp = counter("gormlock.schedule.failures", "{tick}", "Ticks of a schedule that failed as often as they may.")
	o.attempts = counter("gormlock.job.attempts", "{attempt}", "Attempts of jobs that have ended, by outcome.")
	o.handling = duration("gormlock.job.attempt.duration", "How long attempts of jobs took, by outcome.")
	o.takeovers = counter("gormlock.job.takeovers", "{job}", "Jobs that were taken from a worker whose lease had ended.")
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("gormlock: opentelemetry instruments: %w", err)
	}
	return o, nil
}

// Observe records e. It does not block, as far as the meter and the tracer do not.
func (o *Observer) Observe(ctx context.Context, e observe.Event) {
	o.count(ctx, e)
	if o.config.noSpans {
		return
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("gormlock "+e.Kind.String(), trace.WithAttributes(spanAttributes(e)...))
	}
}

func (o *Observer) count(ctx context.Context, e observe.Event) {
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(more, o.labels(e)...)...))
	}
	switch e.Kind {
	case observe.Acquired, observe.NotAcquired, observe.TimedOut:
		attributes := with(outcome(e.Kind))
		o.acquisitions.Add(ctx, 1, attributes)
		o.wait.Record(ctx, e.Wait.Seconds(), attributes)
	case observe.Released:
		o.hold.Record(ctx, e.Held.Seconds(), with())
	case observe.Lost:
		o.losses.Add(ctx, 1, with())
		o.hold.Record(ctx, e.Held.Seconds(), with())
	case observe.Stale:
		o.refusals.Add(ctx, 1, with(attribute.String("gormlock.reason", "stale")))
	case observe.Fenced:
		o.refusals.Add(ctx, 1, with(attribute.String("gormlock.reason", "fenced")))
	case observe.Claimed:
		o.claims.Add(ctx, 1, with())
		o.rows.Add(ctx, e.Rows, with())
	case observe.Retried:
		o.retries.Add(ctx, 1, with())
	case observe.GivenUp:
		o.givenUp.Add(ctx, 1, with())
	case observe.Done, observe.Failed, observe.Later, observe.Dead:
		attributes := with(attribute.String("gormlock.outcome", e.Kind.String()))
		o.attempts.Add(ctx, 1, attributes)
		if e.Held != 0 { // else nobody was there to end it
			o.handling.Record(ctx, e.Held.Seconds(), attributes)
		}
	case observe.TakenOver:
		o.takeovers.Add(ctx, 1, with())
	}
}

func outcome(k observe.Kind) attribute.KeyValue {
	text := "acquired"
	switch k {
	case observe.NotAcquired:
		text = "not_acquired"
	case observe.TimedOut:
		text = "timed_out"
	default:
	}
	return attribute.String("gormlock.outcome", text)
}

// labels are the attributes of metrics, which have few values each.
func (o *Observer) labels(e observe.Event) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("db.system.name", "postgresql")}
	list = appendText(list, "gormlock.source", e.Source)
	list = appendText(list, "gormlock.mode", e.Mode)
	list = appendText(list, "db.collection.name", e.Table)
	if o.config.label != nil && e.Key != "" {
		list = appendText(list, "gormlock.key", o.config.label(e.Key))
	}
	return list
}

// spanAttributes say all there is to say.
func spanAttributes(e observe.Event) []attribute.KeyValue {
	var list []attribute.KeyValue
	list = appendText(list, "gormlock.source", e.Source)
	list = appendText(list, "gormlock.key", e.Key)
	list = appendText(list, "gormlock.mode", e.Mode)
	list = appendText(list, "gormlock.owner", e.Owner)
	list = appendText(list, "db.collection.name", e.Table)
	if e.Token != 0 {
		list = append(list, attribute.Int64("gormlock.token", e.Token))
	}
	if e.Kind == observe.Claimed {
		list = append(list, attribute.Int64("gormlock.rows", e.Rows))
	}
	if e.Wait != 0 {
		list = append(list, attribute.Float64("gormlock.wait", e.Wait.Seconds()))
	}
	if e.Held != 0 {
		list = append(list, attribute.Float64("gormlock.held", e.Held.Seconds()))
	}
	if e.Err != nil {
		list = append(list, attribute.String("exception.message", fmt.Sprint(e.Err)))
	}
	return list
}

func appendText(list []attribute.KeyValue, name, value string) []attribute.KeyValue {
	if value == "" {
		return list
	}
	return append(list, attribute.String(name, value))
}
