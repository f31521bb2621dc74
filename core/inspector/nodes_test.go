package inspector_test

import (
	"context"
	"iter"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// quorum has a node that has not answered, and one that knows nothing.
type quorum struct{ *memlock.Store }

func (q quorum) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return func(yield func(inspect.LeaseInfo, error) bool) {
		for info, err := range q.Store.Leases(ctx, prefix) {
			info.Nodes = []inspect.NodeInfo{{Held: true, Label: info.Label, Handle: info.Handle, Remaining: info.Remaining}, {Silent: true}, {}}
			if !yield(info, err) {
				return
			}
		}
	}
}

func TestNodesThatDisagreeAreShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := newLocker(t, quorum{memlock.New()})
		acquire(t, locks, "order:42", core.WithLabel("web-7"))
		page := inspector.New(locks)
		defer page.Close()
		b := watch(t, page, "")
		defer b.leave()
		n := b.next().Names[0]
		want := []node{{Held: true, Label: "web-7", Handle: n.Handle}, {Silent: true}, {}}
		if !reflect.DeepEqual(n.Nodes, want) {
			t.Errorf("%+v, not %+v", n.Nodes, want)
		}
	})
}
