package call

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Renew makes one call for many claims, which takes bound at most, and returns an error for each of them.
func (p *Port) Renew(claims []driver.Claim, bound time.Duration) []error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	var errs []error
	if p.Can.Punctual {
		errs = p.renew(ctx, claims)
	} else {
		answer := make(chan []error, 1)
		p.Tasks.Go(func() {
			var errs []error
			defer func() { answer <- errs }() // also if the client ends the goroutine
			errs = p.renew(ctx, claims)
		})
		select {
		case errs = <-answer:
		case <-ctx.Done():
		}
	}
	for len(errs) < len(claims) {
		errs = append(errs, ErrNoAnswer)
	}
	return errs
}

// renew calls the driver. After a panic no claim has an answer.
func (p *Port) renew(ctx context.Context, claims []driver.Claim) []error {
	defer func() { _ = recover() }()
	return p.driver.Renew(ctx, claims)
}
