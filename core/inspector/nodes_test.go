package inspector_test

import (
	"reflect"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

func TestNodesThatDisagreeAreShown(t *testing.T) {
	t.Parallel()
	virtual(t, &disturbed{change: func(info *inspect.LeaseInfo) { // one has not answered, one knows nothing
		info.Nodes = []inspect.NodeInfo{{Held: true, Label: info.Label, Handle: info.Handle, Remaining: info.Remaining}, {Silent: true}, {}}
	}}, func(b *bench) {
		b.acquire(b.locks, "order:42", core.WithLabel("web-7"))
		n := b.glance(b.page, "").Names[0]
		want := []node{{Held: true, Label: "web-7", Handle: n.Handle}, {Silent: true}, {}}
		if !reflect.DeepEqual(n.Nodes, want) {
			b.Errorf("%+v, not %+v", n.Nodes, want)
		}
	})
}
