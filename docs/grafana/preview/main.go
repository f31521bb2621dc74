// Command preview draws the dashboard without Grafana: it makes load on locks, has a
// Prometheus of its own scrape it, sends that every query of the dashboard, and draws the
// answers as the dashboard lays them out. It fails if a query finds nothing.
//
//	go run . -for 3m -page /tmp/holdfast.html
//	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1400,1080 \
//		--screenshot=../holdfast.png file:///tmp/holdfast.html
//
// It needs Debian's package prometheus, or the binary from elsewhere on the PATH.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast/core/telemetry"
)

func main() {
	log.SetFlags(0)
	span := flag.Duration("for", 3*time.Minute, "how long to make load; the dashboard shows that time")
	dashboard := flag.String("dashboard", "../holdfast.json", "the dashboard")
	out := flag.String("page", "holdfast.html", "where to write the page")
	flag.Parse()
	if err := run(*span, *dashboard, *out); err != nil {
		log.Fatal(err)
	}
}

func run(span time.Duration, dashboard, out string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, err := readDashboard(dashboard)
	if err != nil {
		return err
	}
	tel, handler, err := exported()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	p, err := startPrometheus(ctx, listener.Addr().String())
	if err != nil {
		return err
	}
	defer p.stop()
	began := time.Now()
	if err := load(ctx, tel, rateInterval+span); err != nil {
		return err
	}
	if err := p.answer(ctx, d, began.Add(rateInterval), time.Now()); err != nil {
		return err
	}
	file, err := os.Create(out) //nolint:gosec // G304: the user says where
	if err != nil {
		return err
	}
	if err := page.Execute(file, d); err != nil {
		return err
	}
	return file.Close()
}

// exported is a Telemetry, and what Prometheus scrapes of it.
func exported() (*telemetry.Telemetry, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, nil, fmt.Errorf("exporter: %w", err)
	}
	tel, err := telemetry.New(
		telemetry.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter))),
		telemetry.WithTemplates(templates...))
	return tel, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}
