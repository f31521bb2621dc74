// Command lockgen makes a decorator of an interface, from comments on its methods. go generate runs it:
//
//	//go:generate go run github.com/holdfast-go/holdfast/core/lockgen
//	type Orders interface {
//		//holdfast:lock order:{req.OrderID}
//		Refund(ctx context.Context, req *Refund) (receipt string, err error)
//		//holdfast:lock order:{id|uuid} wait=2s dedup=24h
//		Ship(ctx context.Context, id string) error
//		List(ctx context.Context) ([]string, error) // no comment: it passes through
//	}
//
// For a file orders.go this writes orders_lock.go, with
//
//	func LockOrders(locks *core.Locker, next Orders) (Orders, error)
//
// Its result calls next's methods while it holds their locks. The context that they get ends when the lock is lost. Its
// errors are those of core.Locker.Do, and for a value that is missing or cannot be used a *key.SourceError.
//
// The template of a lock is as everywhere; several of them have a space between. A source is a parameter, or a field below one.
// If there is no such field, the compiler says so, and points at the comment. A method with a lock has a context.Context first, and
// an error last. Behind the templates come the options: wait=, ttl=, maxhold=, minhold= and dedup= with a duration, limit= with a
// number, and shared. The scope of dedup is the method, as in "Orders.Ship".
package main

import (
	"fmt"
	"log"
	"os"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("lockgen: ")
	file := os.Getenv("GOFILE") // of go generate
	if len(os.Args) == 2 {
		file = os.Args[1]
	}
	if file == "" || len(os.Args) > 2 {
		log.Fatal("run it by go generate, or with the name of a Go file")
	}
	if err := generate(file); err != nil {
		log.Fatal(err)
	}
}

// generate writes the decorators of a file's interfaces beside it.
func generate(file string) error {
	s, err := parse(file)
	if err != nil {
		return err
	}
	if len(s.decorated) == 0 {
		return fmt.Errorf("%s: no method of an interface has a comment %s", file, directive)
	}
	out := strings.TrimSuffix(file, ".go") + "_lock.go"
	text, err := s.write(out)
	if err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o644) //nolint:gosec // G306: source code
}
