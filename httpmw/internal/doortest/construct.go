package doortest

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func testConstruction(t *testing.T, door Door) {
	locks := NewLocker(t, &Backend{Store: memlock.New()})
	key := func(*http.Request) (string, error) { return "x", nil }
	warnsOfConstants(t, door, locks)
	for name, s := range map[string]Setup{
		"NoLocker":           {Key: "order:{id|int}"},
		"ALockerNotFromNew":  {Locker: new(core.Locker), Key: "order:{id|int}"},
		"NoKey":              {Locker: locks},
		"TwoKeys":            {Locker: locks, Key: "order:{id|int}", KeyFunc: key},
		"APathWithoutAForm":  {Locker: locks, Key: "order:{id}"},
		"AQueryWithoutAForm": {Locker: locks, Key: "order:{query:id}"},
		"HeaderWithoutAForm": {Locker: locks, Key: "order:{header:X-Order}"},
		"ABrokenTemplate":    {Locker: locks, Key: "order:{id"},
		"AnUnknownKind":      {Locker: locks, Key: "order:{metadata:id|int}"},
		"NoHeaderName":       {Locker: locks, Key: "order:{header:x[1]|text}"},
		"NoASCIIHeaderName":  {Locker: locks, Key: "order:{header:größe|text}"},
		"ATemplateTwice":     {Locker: locks, Key: "order:{id|int} order:{id|int}"},
		"ASpaceThatIsNone":   {Locker: locks, Key: "order: {id}"},
		"AColonParameter":    {Locker: locks, Key: "orders/:id"},
		"AColonAtTheStart":   {Locker: locks, Key: ":id"},
		"AColonAfterAColon":  {Locker: locks, Key: "order::id"},
		"AngleBrackets":      {Locker: locks, Key: "order:<id>"},
		"ANegativeMaxBody":   {Locker: locks, Key: "order:{id|int}", MaxBody: -1},
		"AnOptionThatIsNil":  {Locker: locks, Key: "order:{id|int}", Options: []core.Option{nil}},
		"AnImpossibleOption": {Locker: locks, Key: "order:{id|int}", Options: []core.Option{core.WithTTL(time.Nanosecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Handler = leaseName
			_, err := door(s)
			if !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%v, want ErrInvalid", err)
			}
			if text := strings.HasPrefix(name, "AColon") || name == "AngleBrackets"; text && !strings.Contains(err.Error(), "did you mean {id|int}") {
				t.Errorf("%v gives no hint", err)
			}
		})
	}
}

// warnsOfConstants: a key without a source is legal, and seldom what was meant.
func warnsOfConstants(t *testing.T, door Door, locks *core.Locker) {
	t.Helper()
	for key, warns := range map[string]bool{"job:nightly": true, "order:{id|int}:pay": false} {
		var log logBuffer
		if _, err := door(Setup{Locker: locks, Key: key, Handler: leaseName, Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if got := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "job:nightly"); got != warns {
			t.Errorf("%s: logged %q", key, log.String())
		}
	}
}
