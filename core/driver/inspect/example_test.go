package inspect_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// A backend tells who has a name. Programs ask package operate.
func Example() {
	ctx := context.Background()
	store := memlock.New()
	var looker inspect.Inspector = store
	if _, err := store.Acquire(ctx, driver.Claim{Name: "order:42", Token: "secret", TTL: time.Second, Label: "shop-1"}); err != nil {
		panic(err)
	}
	info, err := looker.Inspect(ctx, "order:42")
	fmt.Println(info.Held, info.Kind, info.Label, err)
	// Output: true exclusive shop-1 <nil>
}
