package rivermw

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

func sources(name string) (adapter.Source[*rivertype.JobRow], error) {
	kind, path, ok := strings.Cut(name, ":")
	switch {
	case !ok:
		return of(func(job *rivertype.JobRow) (string, error) { return key.JSONValue(job.EncodedArgs, name) }), nil
	case kind == "metadata":
		return of(func(job *rivertype.JobRow) (string, error) { return key.JSONValue(job.Metadata, path) }), nil
	case name == "river:kind":
		return of(func(job *rivertype.JobRow) (string, error) { return job.Kind, nil }), nil
	case name == "river:queue":
		return of(func(job *rivertype.JobRow) (string, error) { return job.Queue, nil }), nil
	case name == "river:id":
		return of(func(job *rivertype.JobRow) (string, error) { return strconv.FormatInt(job.ID, 10), nil }), nil
	default:
		return adapter.Source[*rivertype.JobRow]{},
			errors.New("there are {json.path}, {metadata:json.path}, {river:kind}, {river:queue} and {river:id}")
	}
}

func of(read func(*rivertype.JobRow) (string, error)) adapter.Source[*rivertype.JobRow] {
	return adapter.Typed(func(_ context.Context, job *rivertype.JobRow) (string, error) { return read(job) })
}
