package grpcmw_test

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func TestReasonsOfStatusesAreTold(t *testing.T) {
	t.Parallel()
	is := map[string]func(error) bool{
		"held": grpcmw.IsHeld, "duplicate": grpcmw.IsDuplicate, "lost": grpcmw.IsLost,
		"unavailable": grpcmw.IsUnavailable, "invalid": grpcmw.IsKeyInvalid,
	}
	for own, err := range map[string]error{
		"held": core.ErrHeld, "duplicate": core.ErrDuplicate, "lost": core.ErrLost,
		"unavailable": core.ErrUnavailable, "invalid": core.ErrInvalid, "none": nil, "other": io.EOF,
	} {
		if s := grpcmw.StatusFor(err); s != nil {
			err = s.Err()
		}
		for what, says := range is {
			if says(err) != (what == own) {
				t.Errorf("%s: Is %s: %v", own, what, says(err))
			}
		}
	}
}

// The other server is another region's, a shard, or the next version of the service. Its refusal says
// of the same method that the handler did not run. Here it has run.
func TestAForwardedRefusalDoesNotNameTheMethodThatForwardsIt(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "order:42")
	next := serve(t, &shop{refund: ok}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)
	forward := func(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
		return next.Refund(ctx, req)
	}
	for what, rule := range map[string]string{"with a rule": refund, "without a rule": quote} {
		opts := grpcmw.ServerOptions(newLocker(t, memlock.New()), grpcmw.WithMethod(rule, orderKey))
		_, err := serve(t, &shop{refund: forward}, opts...).Refund(t.Context(), order())
		if wantStatus(t, err, codes.Aborted, grpcmw.ReasonHeld); errorInfo(err).GetMetadata()[grpcmw.MethodMetadata] != "" {
			t.Errorf("%s: %v", what, errorInfo(err))
		}
	}
}
