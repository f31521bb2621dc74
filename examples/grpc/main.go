// Grpc shows Holdfast in gRPC servers, with nothing to set up:
//
//	cd examples/grpc && go run .
//
// Two servers with one lock service, an embedded miniredis, serve the same orders. What they
// lock stands beside the methods, in orderspb/orders.proto. Clients meet contention, on a
// bidi stream too, and one with nothing but gRPC's own retry policy gets through.
//
// The exit status is 0 only if everything was as the output says.
//
// The files: chain.go is the recipe, how the lock stands among other interceptors; orders.go
// is the service, servers.go what runs it, clients.go who calls it, and story.go what happens.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/grpcmw"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Stdout, chain))
}

// run tells the story, to the end or to what is not as promised. Only tests give it another
// chain than the one of chain.go.
func run(ctx context.Context, out io.Writer, chain func(*grpcmw.Interceptors) []grpc.ServerOption) (status int) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	began := time.Now()
	s, err := start(ctx, chain)
	if err == nil {
		err = tell(ctx, out, s)
		s.stop(ctx)
	}
	if err != nil {
		_, _ = fmt.Fprintf(out, "\nFAILED: %v\n", err)
		return 1
	}
	_, _ = fmt.Fprintf(out, "\nAll as promised. It took %s.\n", seconds(time.Since(began)))
	return 0
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
