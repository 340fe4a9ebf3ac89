package otelobserve_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/observe/otelobserve"
)

var events = []observe.Event{
	{Kind: observe.Acquired, Source: "sessionlock", Key: "invoice/42", Mode: "exclusive", Owner: "me", Token: 7, Wait: 250 * time.Millisecond},
	{Kind: observe.NotAcquired, Source: "sessionlock", Key: "invoice/42", Mode: "exclusive", Wait: time.Millisecond},
	{Kind: observe.TimedOut, Source: "gormlock", Key: "invoice/42", Mode: "shared", Wait: 2 * time.Second},
	{Kind: observe.Released, Source: "sessionlock", Key: "invoice/42", Held: 90 * time.Second},
	{Kind: observe.Lost, Source: "lease", Key: "invoice/42", Held: time.Second, Err: errors.New("gone")},
	{Kind: observe.Stale, Source: "gormlock", Table: "accounts"},
	{Kind: observe.Fenced, Source: "gormlock", Table: "reports", Token: 3},
	{Kind: observe.Claimed, Source: "gormlock", Table: "jobs", Rows: 10},
	{Kind: observe.Claimed, Source: "gormlock", Table: "jobs"},
	{Kind: observe.Retried, Source: "gormlock", Err: errors.New("stale")},
	{Kind: observe.GivenUp, Source: "lease", Key: "report/7", Err: errors.New("disk full")},
	{Kind: observe.Done, Source: "work", Table: "mails", Key: "7", Held: time.Second},
	{Kind: observe.Failed, Source: "work", Table: "mails", Key: "8", Held: 2 * time.Second, Err: errors.New("no")},
	{Kind: observe.Later, Source: "work", Table: "mails", Key: "9", Held: time.Second},
	{Kind: observe.Dead, Source: "work", Table: "mails", Key: "10", Err: errors.New("no")},
	{Kind: observe.TakenOver, Source: "work", Table: "mails", Key: "10"},
}

// record tells an observer with the given options of all events, and reads its metrics.
func record(t *testing.T, opts ...otelobserve.Option) map[string]metricdata.Metrics {
	t.Helper()
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	o, err := otelobserve.New(append(opts, otelobserve.MeterProvider(provider))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		o.Observe(t.Context(), e)
	}
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	metrics := map[string]metricdata.Metrics{}
	for _, s := range data.ScopeMetrics {
		for _, m := range s.Metrics {
			metrics[m.Name] = m
		}
	}
	return metrics
}

func TestMetrics_countEachKind(t *testing.T) {
	t.Parallel()
	metrics := record(t)
	for _, c := range []struct {
		name, attribute, value string
		want                   int64
	}{
		{"gormlock.lock.acquisitions", "gormlock.outcome", "acquired", 1},
		{"gormlock.lock.acquisitions", "gormlock.outcome", "not_acquired", 1},
		{"gormlock.lock.acquisitions", "gormlock.outcome", "timed_out", 1},
		{"gormlock.lock.acquisitions", "gormlock.mode", "shared", 1},
		{"gormlock.lock.losses", "gormlock.source", "lease", 1},
		{"gormlock.write.refusals", "gormlock.reason", "stale", 1},
		{"gormlock.write.refusals", "db.collection.name", "reports", 1},
		{"gormlock.claims", "db.collection.name", "jobs", 2},
		{"gormlock.claim.rows", "db.collection.name", "jobs", 10},
		{"gormlock.transaction.retries", "db.system.name", "postgresql", 1},
		{"gormlock.schedule.failures", "gormlock.source", "lease", 1},
		{"gormlock.job.attempts", "gormlock.outcome", "done", 1},
		{"gormlock.job.attempts", "gormlock.outcome", "failed", 1},
		{"gormlock.job.attempts", "gormlock.outcome", "later", 1},
		{"gormlock.job.attempts", "gormlock.outcome", "dead", 1},
		{"gormlock.job.takeovers", "db.collection.name", "mails", 1},
	} {
		sum, _ := metrics[c.name].Data.(metricdata.Sum[int64])
		var got int64
		for _, p := range sum.DataPoints {
			if v, _ := p.Attributes.Value(attribute.Key(c.attribute)); v.AsString() == c.value {
				got += p.Value
			}
			if _, named := p.Attributes.Value("gormlock.key"); named {
				t.Errorf("%s names a key, each a time series", c.name)
			}
		}
		if got != c.want || !sum.IsMonotonic {
			t.Errorf("%s{%s=%s} is %d, want %d", c.name, c.attribute, c.value, got, c.want)
		}
	}
}

func TestMetrics_measureSeconds(t *testing.T) {
	t.Parallel()
	metrics := record(t)
	for name, want := range map[string]float64{"gormlock.lock.wait.duration": 2.251, "gormlock.lock.hold.duration": 91, "gormlock.job.attempt.duration": 4} {
		histogram, _ := metrics[name].Data.(metricdata.Histogram[float64])
		var sum float64
		for _, p := range histogram.DataPoints {
			sum += p.Sum
			if p.Bounds[0] != 0.001 || p.Bounds[len(p.Bounds)-1] != 300 {
				t.Errorf("%s has the buckets %v", name, p.Bounds)
			}
		}
		if sum != want || metrics[name].Unit != "s" {
			t.Errorf("%s is %v %s, want %v s", name, sum, metrics[name].Unit, want)
		}
	}
}

// docs/metrics.md lists what there is, by the names that dashboards see.
func TestMetrics_areDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics := record(t)
	for name, m := range metrics {
		series := strings.ReplaceAll(name, ".", "_")
		if m.Unit == "s" {
			series += "_seconds"
		} else {
			series += "_total"
		}
		if row := "| `" + name + "` | `" + series + "` |"; !strings.Contains(string(text), row) {
			t.Errorf("no row %s", row)
		}
	}
	for _, series := range regexp.MustCompile(`gormlock_[a-z_]+_(?:total|seconds)`).FindAllString(string(text), -1) {
		name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(series, "_total"), "_seconds"), "_", ".")
		if _, known := metrics[name]; !known {
			t.Errorf("%s is documented, and is not there", series)
		}
	}
}

func TestKeyLabel_namesKeysByItsRule(t *testing.T) {
	t.Parallel()
	metrics := record(t, otelobserve.KeyLabel(func(key string) string {
		topic, _, _ := strings.Cut(key, "/")
		return topic
	}))
	sum := metrics["gormlock.lock.acquisitions"].Data.(metricdata.Sum[int64])
	for _, p := range sum.DataPoints {
		if v, _ := p.Attributes.Value("gormlock.key"); v.AsString() != "invoice" {
			t.Errorf("the key is called %q", v.AsString())
		}
	}
}

func TestSpan_getsAnEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts []otelobserve.Option
		want int
	}{
		"by default":        {nil, len(events)},
		"WithoutSpanEvents": {[]otelobserve.Option{otelobserve.WithoutSpanEvents()}, 0},
	} {
		recorder := tracetest.NewSpanRecorder()
		ctx, span := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "work")
		o, err := otelobserve.New(c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			o.Observe(ctx, e)
		}
		span.End()
		got := recorder.Ended()[0].Events()
		if len(got) != c.want {
			t.Fatalf("%s: %d events, want %d", name, len(got), c.want)
		}
		if c.want == 0 {
			continue
		}
		first := attribute.NewSet(got[0].Attributes...)
		for name, want := range map[attribute.Key]string{"gormlock.key": "invoice/42", "gormlock.owner": "me", "gormlock.token": "7", "gormlock.wait": "0.25"} {
			if v, _ := first.Value(name); v.String() != want {
				t.Errorf("%s is %q, want %q", name, v.String(), want)
			}
		}
		if got[0].Name != "gormlock acquired" {
			t.Errorf("the event is called %q", got[0].Name)
		}
	}
}

// textless is an error that panics if it is a nil pointer.
type textless struct{ text string }

func (e *textless) Error() string { return e.text }

func TestObserver_anErrorWithoutAText(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	ctx, span := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "work")
	o, err := otelobserve.New()
	if err != nil {
		t.Fatal(err)
	}
	o.Observe(ctx, observe.Event{Kind: observe.Retried, Err: (*textless)(nil)})
	span.End()
	if got := recorder.Ended()[0].Events(); len(got) != 1 {
		t.Errorf("%d events", len(got))
	}
}
