package grpcmw_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// wire sends messages that are bytes already, as no generated client does.
type wire struct{}

func (wire) Name() string                  { return "proto" }
func (wire) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (wire) Unmarshal([]byte, any) error   { return nil }

// noted is a RefundRequest on the wire.
func noted(note string) []byte {
	number := new(testpb.RefundRequest).ProtoReflect().Descriptor().Fields().ByName("note").Number()
	return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), note)
}

// named is a service whose handlers tell the names of their locks.
type named struct {
	shop
	name string // of the last lock, "" for none
}

func (n *named) saw(ctx context.Context) { x, _ := core.FromContext(ctx); n.name = x.Name() }

func newNamed() *named {
	n := &named{}
	n.refund = func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
		n.saw(ctx)
		return &testpb.Reply{}, nil
	}
	n.watch = func(_ *testpb.RefundRequest, ss watchServer) error {
		n.saw(ss.Context())
		return ss.Send(&testpb.Reply{})
	}
	return n
}

// hostileCalls are the ways by which a value gets into a call.
func hostileCalls() map[string]func(ctx context.Context, conn *grpc.ClientConn, value string) error {
	return map[string]func(context.Context, *grpc.ClientConn, string) error{
		"unary": func(ctx context.Context, conn *grpc.ClientConn, value string) error {
			return conn.Invoke(ctx, refund, noted(value), new(any), grpc.ForceCodec(wire{}))
		},
		"stream": func(ctx context.Context, conn *grpc.ClientConn, value string) error {
			ss, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, watch, grpc.ForceCodec(wire{}))
			if err != nil {
				return err
			}
			if err := ss.SendMsg(noted(value)); err != nil {
				return err
			}
			if err := ss.CloseSend(); err != nil {
				return err
			}
			return ss.RecvMsg(new(any))
		},
	}
}

func TestHostileFieldsGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	for what, call := range hostileCalls() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			n, conn, log := startHostile(t, "{note}")
			var names hostile.Names
			for what, value := range hostile.Values() {
				n.name = ""
				err := call(t.Context(), conn, value)
				switch {
				case utf8.ValidString(value):
					if err != nil {
						t.Errorf("%s: %v", what, err)
						continue
					}
					names.Check(t, value, n.name)
				case status.Code(err) != codes.Internal || strings.Contains(err.Error(), value) || n.name != "":
					t.Errorf("%s: %v, locked %q", what, err, n.name) // no protobuf message: gRPC refuses it
				}
			}
			n.name = ""
			rpctest.WantStatus(t, call(t.Context(), conn, ""), codes.InvalidArgument, grpcmw.ReasonKeyInvalid)
			if n.name != "" || log.Len() > 0 {
				t.Errorf("locked %q, logged %s", n.name, log)
			}
		})
	}
}

func TestHostileMetadataGetsLocksOfItsOwnNames(t *testing.T) {
	t.Parallel()
	n, conn, log := startHostile(t, "{metadata:x-id|text}")
	var names hostile.Names
	for what, value := range hostile.Values() {
		if len(value) >= 1<<20 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			continue // no client of gRPC sends it
		}
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-id", value)
		if err := conn.Invoke(ctx, refund, noted("x"), new(any), grpc.ForceCodec(wire{})); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		names.Check(t, value, n.name)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

// startHostile serves methods whose key has this source, with all that is logged.
func startHostile(t *testing.T, source string) (*named, *grpc.ClientConn, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer // one call at a time
	logger := slog.New(slog.NewTextHandler(&log, nil))
	key := strings.Replace(hostile.Template, "{v}", source, 1)
	n := newNamed()
	_, addr := startService(t, func(srv *grpc.Server) { testpb.RegisterOrdersServer(srv, n) }, grpcmw.ServerOptions(rpctest.NewLocker(t, memlock.New(), core.WithLogger(logger)), grpcmw.WithLogger(logger),
		grpcmw.WithMethod(refund, key), grpcmw.WithMethod(watch, key))...)
	return n, connect(t, addr), &log
}
