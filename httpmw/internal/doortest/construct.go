package doortest

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func testConstruction(t *testing.T, door Door) {
	locks := NewLocker(t, &Backend{Store: memlock.New()})
	key := func(*http.Request) (string, error) { return "x", nil }
	for name, s := range map[string]Setup{
		"NoLocker":           {Key: "order:{id}"},
		"ALockerNotFromNew":  {Locker: new(core.Locker), Key: "order:{id}"},
		"NoKey":              {Locker: locks},
		"TwoKeys":            {Locker: locks, Key: "order:{id}", KeyFunc: key},
		"ABrokenTemplate":    {Locker: locks, Key: "order:{id"},
		"AnUnknownKind":      {Locker: locks, Key: "order:{metadata:id}"},
		"AnUnknownOfHTTP":    {Locker: locks, Key: "order:{http:host}"},
		"NoHeaderName":       {Locker: locks, Key: "order:{header:x[1]}"},
		"NoASCIIHeaderName":  {Locker: locks, Key: "order:{header:größe}"},
		"NoCookieName":       {Locker: locks, Key: "order:{cookie:x@y}"},
		"AnotherHeldStatus":  {Locker: locks, Key: "order:{id}", HeldStatus: http.StatusTeapot},
		"ANegativeMaxBody":   {Locker: locks, Key: "order:{id}", MaxBody: -1},
		"AnOptionThatIsNil":  {Locker: locks, Key: "order:{id}", Options: []core.Option{nil}},
		"AnImpossibleOption": {Locker: locks, Key: "order:{id}", Options: []core.Option{core.WithTTL(time.Nanosecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Handler = leaseName
			if _, err := door(s); !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%v, want ErrInvalid", err)
			}
		})
	}
}
