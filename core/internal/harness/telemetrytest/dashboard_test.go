package telemetrytest_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

const grafana = "../../../../docs/grafana/"

// ourMetrics finds names of ours, as Prometheus has them.
var ourMetrics = regexp.MustCompile(`\bdistlock_[a-z_]+\b`)

// ourLabels stand in the same texts.
var ourLabels = []string{"distlock_template", "distlock_reason"}

// scraped is what a scrape finds once a lease has come and gone.
func scraped(t *testing.T) map[string]bool {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	backendtest.OK(t, err)
	tel, err := telemetry.New(telemetry.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter))), telemetry.WithTemplates("order:{id}"))
	backendtest.OK(t, err)
	for _, kind := range []core.EventKind{core.EventAcquired, core.EventReleased} {
		tel.Observe(core.Event{Kind: kind, Template: "order:{id}", Context: t.Context()})
	}
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	text, _ := io.ReadAll(recorder.Body)
	names := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if name := ourMetrics.FindString(line); name != "" && !strings.HasPrefix(line, "#") {
			names[name] = true
		}
		for _, label := range ourLabels {
			if strings.Contains(line, label+"=") {
				names[label] = true
			}
		}
	}
	return names
}

func TestDashboardAlertsAndPageNameWhatIsExportedAndTheDashboardAllOfIt(t *testing.T) {
	t.Parallel()
	names := scraped(t)
	for _, file := range []string{"holdfast.json", "alerts.yml", "alerts_test.yml", "../operate/observing.md"} {
		text := read(t, grafana+file)
		found := ourMetrics.FindAllString(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range found {
			if !names[name] {
				t.Errorf("%s names %s, and exported are %q", file, name, slices.Sorted(maps.Keys(names)))
			}
		}
		for name := range names {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
			if file == "holdfast.json" && !strings.Contains(text, name) {
				t.Errorf("nothing of %s", name)
			}
		}
	}
}

func TestTheAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	promtool := servers.Find(t, "promtool", "prometheus")
	out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", grafana+"alerts_test.yml").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
