package grpcmw

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw/holdfastpb"
)

// WithAnnotations locks every method that has the option (holdfast.v1.lock), of all services whose
// generated code is linked in when the interceptors are made:
//
//	import "holdfast/v1/lock.proto";
//
//	service Orders {
//	  rpc Refund(RefundRequest) returns (RefundReply) {
//	    option (holdfast.v1.lock) = {key: "order:{order.id}", wait: "2s"};
//	  }
//	}
//
// Package holdfastpb says how to import that file. Its LockRule lists the fields of a rule. A rule
// works like [WithMethod] with the same values. A rule that cannot work is an error that names the
// method, even if this program only calls the service. By default no annotations are read. A method
// that [WithMethod] or [WithMethodFunc] lists keeps that rule, in any order of the options, and its
// annotation is ignored.
//
// The options are defaults for the annotated methods: what a rule says itself wins. Giving
// WithAnnotations twice is an error if there is any annotation.
func WithAnnotations(opts ...core.Option) Option {
	return WithMethodOption(holdfastpb.E_Lock, func(r *holdfastpb.LockRule) (string, []core.Option, error) {
		own, err := lockOptions(r)
		return r.GetKey(), slices.Concat(opts, own), err
	})
}

// lockOptions returns what r says beside its key.
func lockOptions(r *holdfastpb.LockRule) ([]core.Option, error) {
	if len(r.ProtoReflect().GetUnknown()) > 0 {
		return nil, errors.New("it has fields that this version of Holdfast does not know")
	}
	if r.GetKey() == "" {
		return nil, errors.New("key: missing")
	}
	var opts []core.Option
	for _, f := range []struct {
		name   string
		text   *string
		option func(time.Duration) core.Option
	}{
		{"wait", r.Wait, core.WithWait},
		{"ttl", r.Ttl, core.WithTTL},
		{"max_hold", r.MaxHold, core.WithMaxHold},
		{"dedup", r.Dedup, core.WithDedup},
	} {
		if f.text == nil {
			continue
		}
		d, err := time.ParseDuration(*f.text)
		if f.name == "wait" && *f.text == "forever" {
			d, err = core.WaitForever, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		opts = append(opts, f.option(d))
	}
	if r.DedupScope != nil {
		opts = append(opts, core.WithDedupScope(*r.DedupScope))
	}
	return opts, nil
}
