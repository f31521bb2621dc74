package telemetrytest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what tests break on purpose is no news
	goleak.VerifyTestMain(m)
}

const (
	ttl      = 10 * time.Second
	template = "order:{id}"
)

// bench is a lock service, one process's Locker on it, and what that exports, in virtual
// time.
type bench struct {
	*testing.T
	store  *memlock.Store
	net    *lab.Net
	locks  *core.Locker
	reader *metric.ManualReader
	spans  *tracetest.InMemoryExporter
	tel    *telemetry.Telemetry
}

// virtual runs f in virtual time.
func virtual(t *testing.T, f func(b *bench), opts ...core.NewOption) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, store: memlock.New(), spans: tracetest.NewInMemoryExporter()}
		b.net = lab.New(b.store)
		b.tel = b.telemetry(telemetry.WithSpans())
		b.locks = b.locker(b.net, append([]core.NewOption{core.WithTemplate(template), b.tel.Option()}, opts...)...)
		f(b)
		b.net.Deliver()
	})
}

// telemetry is what exports to the bench from now on.
func (b *bench) telemetry(opts ...telemetry.Option) *telemetry.Telemetry {
	b.Helper()
	b.reader = metric.NewManualReader()
	tel, err := telemetry.New(append([]telemetry.Option{
		telemetry.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(b.reader))),
		telemetry.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(b.spans))),
	}, opts...)...)
	b.ok(err)
	return tel
}

func nothing(context.Context) error { return nil }

// in is a context that ends after d.
func (b *bench) in(ctx context.Context, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(ctx, d)
	b.Cleanup(cancel)
	return ctx
}

func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func (b *bench) locker(d driver.Driver, opts ...core.NewOption) *core.Locker {
	b.Helper()
	locks, err := core.New(d, opts...)
	b.ok(err)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if locks.Close(ctx) != nil { // the test has left leases: what is under way must end in the bubble
			time.Sleep(time.Minute)
		}
	})
	return locks
}

// mayFallBack is the Locker of the bench, for leases that may be degraded.
func (b *bench) mayFallBack() *core.Locker {
	b.Helper()
	return b.locker(fallback.New(b.net), core.WithTemplate(template), b.tel.Option())
}

// other is another process, which nobody observes.
func (b *bench) other() *core.Locker {
	b.Helper()
	return b.locker(b.store)
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) is(err, target error) {
	b.Helper()
	if !errors.Is(err, target) {
		b.Errorf("%v does not match %v", err, target)
	}
}

func (b *bench) acquire(l *core.Locker, opts ...core.Option) *core.Lease {
	b.Helper()
	x, err := l.TryAcquire(b.Context(), "order:42", opts...)
	b.ok(err)
	return x
}

func (b *bench) collect() metricdata.ResourceMetrics {
	b.Helper()
	synctest.Wait()
	var all metricdata.ResourceMetrics
	b.ok(b.reader.Collect(context.Background(), &all))
	return all
}

// export is what a collection exports, one line for each series: its name, its attributes
// but for the template of the bench, and its value. That of a histogram is how many there
// were, and their sum in whole seconds.
func (b *bench) export() []string {
	b.Helper()
	var lines []string
	add := func(name string, attrs attribute.Set, format string, args ...any) {
		lines = append(lines, strings.TrimPrefix(name, "distlock.")+series(attrs)+" "+fmt.Sprintf(format, args...))
	}
	for _, scope := range b.collect().ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, "%d", p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, "%d %.0fs", p.Count, p.Sum)
				}
			default:
				b.Errorf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func series(attrs attribute.Set) string {
	var others []string
	for _, kv := range attrs.ToSlice() {
		if kv.Key != "distlock.template" || kv.Value.AsString() != template {
			others = append(others, string(kv.Key)+"="+kv.Value.String())
		}
	}
	if _, ok := attrs.Value("distlock.template"); !ok {
		others = append(others, "no template")
	}
	if len(others) == 0 {
		return ""
	}
	return "{" + strings.Join(others, ",") + "}"
}

// exports fails the test unless exactly these lines are exported; a question mark stands for
// a figure that jitter decides.
func (b *bench) exports(want ...string) {
	b.Helper()
	slices.Sort(want)
	if got := b.export(); !slices.EqualFunc(got, want, matches) {
		b.Errorf("exported\n\t%s\nnot\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func matches(got, want string) bool {
	match, err := path.Match(want, got)
	return match && err == nil
}
