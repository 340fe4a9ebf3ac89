package otelobserve_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/observe/otelobserve"
)

// One observer for all: gormlock.WithObserver, and Observer of sessionlock, lease and work take it.
func ExampleNew() {
	reader := metric.NewManualReader() // a program has an exporter
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	o, err := otelobserve.New(otelobserve.MeterProvider(provider))
	if err != nil {
		fmt.Println(err)
		return
	}
	o.Observe(context.Background(), observe.Event{Kind: observe.Stale, Source: "gormlock", Table: "accounts"})

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name)
	}
	// Output: gormlock.write.refusals
}
