package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-go/holdfast/core"
)

// The keys of attributes.
const (
	templateKey = attribute.Key("distlock.template")
	reasonKey   = attribute.Key("distlock.reason")
	nameKey     = attribute.Key("distlock.name")     // of spans only, if asked for
	fenceKey    = attribute.Key("distlock.fence")    // of spans only: it has as many values as there are leases
	degradedKey = attribute.Key("distlock.degraded") // of spans only
	errorKey    = attribute.Key("error.type")        // of the semantic conventions
)

// otherError is what the semantic conventions call an error of no known type.
const otherError = "_OTHER"

// attributes are those of one series: the template, and one other if it has a value.
func attributes(template string, key attribute.Key, value string) []attribute.KeyValue {
	kvs := make([]attribute.KeyValue, 0, 2)
	if template != "" {
		kvs = append(kvs, templateKey.String(template))
	}
	if value != "" {
		kvs = append(kvs, key.String(value))
	}
	return kvs
}

// errorType is the kind of an error, "" if there is none. Its text has names in it.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	if typed, ok := errors.AsType[interface {
		error
		ErrorType() string
	}](err); ok {
		return typed.ErrorType()
	}
	return otherError
}

// The error types that more than one event has.
const (
	duplicateType   = "duplicate"
	heldType        = "held"
	lostType        = "lost"
	unavailableType = "unavailable"
)

// reasons are those that a lease can be lost for.
func reasons() []core.Reason {
	return []core.Reason{core.ReasonExpired, core.ReasonTaken, core.ReasonUnreachable, core.ReasonMaxHold}
}
