package adapter_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// id has a text of its own, which what it embeds has no part in.
type id struct {
	base
	fmt.Stringer
	of string
	At time.Time
}

func (i id) MarshalText() ([]byte, error) {
	if i.of == "no" {
		return nil, errors.New("secret")
	}
	return []byte("id-" + i.of), nil
}

type kind string

type base struct{ Tenant string }

type Line struct {
	SKU   string
	Count *uint16
}

type order struct {
	base
	*Line

	ID      int64
	Kind    kind
	Express bool
	Key     id
	Next    **order
	Number  *big.Int
	At      time.Time
	Price   float64
	Items   []string
	Any     any
	Literal json.Number
	Paid    paid
	Shipped struct{ *paid }
	Weight  *big.Float
	Named   struct{ encoding.TextMarshaler }
	hidden  string
}

// paid has the text of a time, which differs by its location.
type paid struct{ time.Time }

func TestFieldsNameTheLockOfAStruct(t *testing.T) {
	t.Parallel()
	zero := uint16(0)
	next := &order{ID: 7}
	full := &order{
		base: base{"acme"}, Line: &Line{"A7", &zero}, ID: -42, Kind: "k", Express: true, Key: id{of: "xy"}, Next: &next, Number: big.NewInt(12), hidden: "s",
	}
	for template, want := range map[string]string{
		"{ID}": "-42", "{Kind}:{Express}": "k:true", "{Key}": "id-xy", "{Next.ID}": "7", "{SKU}:{Tenant}": "A7:acme", "{Count}": "0",
		"{base.Tenant}": "", "{Number}": "12", "a:{ID} b:{Next.ID}": "a:-42 b:7", "{Line.Count}": "0", "{SKU|int}": "",
	} {
		k, err := adapter.NewKey(template, adapter.Fields[order]())
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", template, err)
			}
			continue
		}
		if names, err := k.Names(t.Context(), full); strings.Join(names, " ") != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", template, names, err)
		}
		if names, err := k.Names(t.Context(), &order{}); !errors.Is(err, key.ErrMissing) {
			t.Errorf("%s of an empty one: %q, %v", template, names, err)
		}
		if names, err := k.Names(t.Context(), nil); !errors.Is(err, key.ErrMissing) {
			t.Errorf("%s of none: %q, %v", template, names, err)
		}
	}
}

func TestFieldsThatNameNoLockAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"Id": "no exported field", "hidden": "no exported field", "At": "spelling", "Price": "spelling", "Items": "spelling", "Any": "spelling", "Literal": "spelling",
		"Paid": "spelling", "Shipped": "spelling", "Weight": "spelling", "Named": "spelling",
		"Line": "spelling", "Next": "spelling", "ID.X": "no struct", "Next.Nothing": "no exported field",
	} {
		if _, err := adapter.NewKey("{"+name+"}", adapter.Fields[order]()); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	k, err := adapter.NewKey("{Key}", adapter.Fields[order]())
	locktest.OK(t, err)
	if _, err := k.Names(t.Context(), &order{Key: id{of: "no"}}); !errors.Is(err, core.ErrInvalid) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	if _, err := adapter.Value(4.2); !errors.Is(err, adapter.ErrMisconfigured) {
		t.Error(err)
	}
}

func TestWhatGoesWrongInAValuesOwnMethodIsNotMissing(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("the value is missing")
		}
	}()
	reached := true
	defer adapter.Missing(&reached)
	_ = (*order)(nil).Next // as a method of the value might do
}
