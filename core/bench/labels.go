package main

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/core"
)

// labels are Holdfast's own: what the label costs that says who has a name.
func labels() []contestant {
	take := func(opts ...core.Option) func(context.Context, *layered, string) (lease, error) {
		return func(ctx context.Context, l *layered, name string) (lease, error) {
			return l.locks.Acquire(ctx, name, opts...)
		}
	}
	return []contestant{
		layer("no label", "WithLabel(\"\")", take(core.WithLabel(""))),
		layer("host and process", "the default label", take(core.WithOperation(""))),
		layer("and a route", "the default label behind a door", take(core.WithOperation("POST /orders/:id/pay"))),
	}
}

// labelsScenario compares calls that all have one option, which costs by itself.
func labelsScenario() scenario {
	s := pairScenario(1)
	s.name = "labels"
	s.title = "What a label costs an uncontended pair"
	s.contestants = slices.Concat(ours, []string{"no label", "host and process", "and a route"})
	return s
}
