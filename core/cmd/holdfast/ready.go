package main

import (
	"context"
	"flag"
	"fmt"
)

// ready is the command of that name.
func (p *program) ready(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	if err := p.arguments(flags, args, 0); err != nil {
		return misused, err
	}
	at.opts.Create = true // of a file that nobody has made yet, too
	s, err := at.open(ctx)
	if err != nil {
		return failed, err
	}
	defer s.close(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.locks.Ready(ctx); err != nil {
		return failed, err
	}
	_, err = fmt.Fprintf(p.out, "ready: %s\n", clean(s.Place))
	return done, err
}
