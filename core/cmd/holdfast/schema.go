package main

import (
	"context"
	"flag"
	"fmt"
)

// schema is the command of that name.
func (p *program) schema(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	if err := p.arguments(flags, args, 0); err != nil {
		return misused, err
	}
	at.opts.Create = true // else a file has to be there
	s, err := at.open(ctx)
	if err != nil {
		return failed, err
	}
	defer s.close(ctx)
	if s.Schema == "" {
		return misused, p.misuse("schema: %s needs none", clean(s.Place))
	}
	_, err = fmt.Fprintln(p.out, s.Schema+";")
	return done, err
}
