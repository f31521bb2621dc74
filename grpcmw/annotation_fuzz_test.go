package grpcmw_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/holdfastpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Whatever bytes stand where the rule should be: it is taken, and works, or the error says
// where it stands.
func FuzzLockRule(f *testing.F) {
	for _, r := range []*holdfastpb.LockRule{
		{}, {Key: "thing:{id}"}, {Key: "{metadata:x|text}:{grpc:method}"},
		{Key: "a", Wait: new("forever"), Ttl: new("20s"), MaxHold: new("1h"), Dedup: new("24h"), DedupScope: new("x")},
		{Key: "a", Wait: new("-9223372036854775808ns")}, {Key: "a", Ttl: new("2562047h47m16.854775807s")},
	} {
		raw, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, rule []byte) {
		raw := protowire.AppendBytes(protowire.AppendTag(nil, 85625, protowire.BytesType), rule)
		files := private(t, map[string]*descriptorpb.MethodOptions{"Touch": unknown(raw)})
		guard, err := grpcmw.NewFrom(files, locktest.Memory(t), grpcmw.WithAnnotations())
		switch {
		case err != nil && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), touch)):
			t.Errorf("the error does not say where it belongs: %v", err)
		case err == nil && len(guard.Methods()) != 1:
			t.Error("neither an error nor a rule")
		case err == nil:
			_, err := guard.Unary()(t.Context(), thing(t, files, 42), &grpc.UnaryServerInfo{FullMethod: touch}, nothing)
			if code := status.Code(err); code != codes.OK && code != codes.InvalidArgument { // metadata is missing
				t.Errorf("the rule that was taken does not work: %v", err)
			}
		}
	})
}
