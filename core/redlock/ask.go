package redlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// answer is a node's to a question. No error means that it has answered.
type answer[T any] struct {
	node int
	said T
	err  error
}

// ask asks every node at once, and returns the answers in the order of the nodes. When a quorum has answered, the
// others are waited for no longer than grace, or, if that is not 0, four times what the quorum took. Without a
// quorum it is an error.
func ask[T any](ctx context.Context, s *Store, grace time.Duration, question func(ctx context.Context, node driver.Driver) (T, error)) ([]answer[T], error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	came := make(chan answer[T], len(s.nodes))
	all := make([]answer[T], len(s.nodes))
	for i, node := range s.nodes {
		all[i] = answer[T]{node: i, err: errNoAnswer}
		s.tasks.Go(func() {
			said, err := question(ctx, node)
			came <- answer[T]{i, said, err}
		})
	}
	began, answered := time.Now(), 0
	var over <-chan time.Time // for ever, until a quorum has answered
	var errs []error
	for range s.nodes {
		select {
		case a := <-came:
			all[a.node] = a
			if a.err != nil {
				errs = append(errs, s.at(a.node, a.err))
			} else if answered++; answered == s.quorum {
				if grace == 0 {
					return all, nil
				}
				over = time.After(max(grace, 4*time.Since(began)))
			}
			continue
		case <-over:
		case <-ctx.Done():
			errs = append(errs, ctx.Err())
		}
		break
	}
	if answered < s.quorum {
		return nil, s.failure(errs, false)
	}
	return all, nil
}
