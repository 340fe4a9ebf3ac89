package otelobserve_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// The dashboard and the rules ask for series and labels that there are, and show all that docs/metrics.md lists.
func TestMonitoring_asksForWhatThereIs(t *testing.T) {
	t.Parallel()
	series, labels := names(record(t))
	page := file(t, "../../docs/metrics.md")
	for _, name := range []string{"grafana.json", "prometheus-rules.yml"} {
		text := file(t, "../../docs/monitoring/"+name)
		asked := 0
		for _, expression := range expressions(t, name, text) {
			for _, s := range regexp.MustCompile(`gormlock_\w+_(?:total|seconds_\w+)`).FindAllString(expression, -1) {
				if asked++; !series[s] {
					t.Errorf("%s asks for %s, which nobody emits", name, s)
				}
			}
			for _, in := range regexp.MustCompile(`by \(([^)]*)\)|\{([^}]*)\}`).FindAllStringSubmatch(expression, -1) {
				for _, label := range regexp.MustCompile(`\b(?:gormlock|db)_\w+`).FindAllString(in[1]+in[2], -1) {
					if !labels[label] {
						t.Errorf("%s asks for the label %s, which nobody sets", name, label)
					}
				}
			}
			if !strings.Contains(unspaced(page), unspaced(expression)) {
				t.Errorf("docs/metrics.md has no %s", expression)
			}
		}
		if asked < 5 {
			t.Errorf("%s asks for %d series", name, asked)
		}
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func unspaced(text string) string { return strings.Join(strings.Fields(text), "") }

// names are those that the OpenTelemetry exporter for Prometheus gives the series and labels of metrics.
func names(metrics map[string]metricdata.Metrics) (series, labels map[string]bool) {
	series, labels = map[string]bool{}, map[string]bool{}
	add := func(set attribute.Set) {
		for _, pair := range set.ToSlice() {
			labels[strings.ReplaceAll(string(pair.Key), ".", "_")] = true
		}
	}
	for name, m := range metrics {
		name = strings.ReplaceAll(name, ".", "_")
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			series[name+"_total"] = true
			for _, p := range data.DataPoints {
				add(p.Attributes)
			}
		case metricdata.Histogram[float64]:
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				series[name+"_seconds"+suffix] = true
			}
			for _, p := range data.DataPoints {
				add(p.Attributes)
			}
		}
	}
	return series, labels
}

// expressions are the PromQL of a file.
func expressions(t *testing.T, name, text string) (found []string) {
	t.Helper()
	if strings.HasSuffix(name, ".json") {
		var dashboard struct {
			Panels []struct{ Targets []struct{ Expr string } }
		}
		if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				found = append(found, target.Expr)
			}
		}
		return found
	}
	for _, rule := range strings.Split(text, "expr:")[1:] {
		expression, _, _ := strings.Cut(rule, "labels:")
		expression, _, _ = strings.Cut(expression, "for:")
		found = append(found, strings.Trim(expression, " \n|"))
	}
	return found
}
