package inspector_test

import (
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestNodesThatDisagreeAreShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := newLocker(t, &disturbed{Store: memlock.New(), change: func(info *inspect.LeaseInfo) { // one has not answered, one knows nothing
			info.Nodes = []inspect.NodeInfo{{Held: true, Label: info.Label, Handle: info.Handle, Remaining: info.Remaining}, {Silent: true}, {}}
		}})
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
