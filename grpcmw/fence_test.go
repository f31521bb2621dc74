package grpcmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func TestTheFenceTravelsInMetadata(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	got := make(chan uint64, 2)
	client := serve(t, &shop{refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
		f, err := grpcmw.Fence(ctx)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, "no fence")
		}
		md, _ := metadata.FromIncomingContext(ctx)
		if v := md.Get("x-other"); len(v) != 1 {
			t.Errorf("other metadata: %q", v)
		}
		got <- f
		return &testpb.Reply{}, nil
	}})
	outgoing := metadata.AppendToOutgoingContext(t.Context(), "x-other", "1", grpcmw.FenceMetadata, "1")
	err := locks.Do(outgoing, "order:42", func(ctx context.Context) error {
		ctx, err := grpcmw.SetFence(ctx, "order:42")
		if err != nil {
			return err
		}
		ctx, err = grpcmw.SetFence(ctx, "order:42") // twice is once
		if err != nil {
			return err
		}
		if _, err = client.Refund(ctx, order()); err != nil {
			return err
		}
		if want, _ := core.FenceFor(ctx, "order:42"); want == 0 || <-got != want {
			t.Errorf("it is not the fence of the lease, %d", want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	ctx, err := grpcmw.SetFence(outgoing, "order:42")
	if !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("without a lease: %v", err)
	}
	if _, err := client.Refund(ctx, order()); status.Code(err) != codes.InvalidArgument {
		t.Errorf("the old fence was left: %v", err)
	}
	if md, _ := metadata.FromOutgoingContext(outgoing); len(md.Get(grpcmw.FenceMetadata)) != 1 {
		t.Error("the caller's metadata was changed")
	}
}

func TestMetadataThatIsNoFenceIsInvalid(t *testing.T) {
	t.Parallel()
	for what, values := range map[string][]string{
		"none":      nil,
		"empty":     {""},
		"two":       {"1", "1"},
		"a list":    {"1, 2"},
		"zero":      {"0"},
		"negative":  {"-1"},
		"spaces":    {" 1"},
		"too large": {"9007199254740993"},
		"very long": {strings.Repeat("9", 5000)},
		"text":      {"order:42"},
	} {
		f, err := grpcmw.Fence(metadata.NewIncomingContext(t.Context(), metadata.MD{grpcmw.FenceMetadata: values}))
		if f != 0 || !errors.Is(err, fence.ErrInvalid) || len(err.Error()) > 300 {
			t.Errorf("%s: %d, %v", what, f, err)
		}
	}
	if f, err := grpcmw.Fence(metadata.NewIncomingContext(t.Context(), metadata.Pairs(grpcmw.FenceMetadata, "9007199254740992"))); f != fence.Max || err != nil {
		t.Errorf("%d, %v", f, err)
	}
	if _, err := grpcmw.Fence(metadata.AppendToOutgoingContext(t.Context(), grpcmw.FenceMetadata, "1")); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("no metadata: %v", err)
	}
}
