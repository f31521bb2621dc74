package telemetry

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// maxSeries is how many series are remembered. A program has fewer, unless it puts names into
// templates; then the SDK's own limit keeps the others out of what is exported.
const maxSeries = 2000

// series remembers attribute sets: making one costs more than recording with it, and what
// takes long here lets events be dropped.
type series struct {
	mu    sync.RWMutex // protects known
	known map[seriesKey]metric.MeasurementOption
}

type seriesKey struct {
	template string
	key      attribute.Key
	value    string
}

// of returns the series with a template and one attribute more, if that has a value.
func (s *series) of(template string, key attribute.Key, value string) metric.MeasurementOption {
	k := seriesKey{template, key, value}
	s.mu.RLock()
	o, ok := s.known[k]
	s.mu.RUnlock()
	if ok {
		return o
	}
	o = metric.WithAttributeSet(attribute.NewSet(attributes(template, key, value)...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[seriesKey]metric.MeasurementOption)
	}
	if len(s.known) < maxSeries {
		s.known[k] = o
	}
	return o
}
