package core

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/driver"
)

// labels is a driver that remembers the labels of claims.
type labels struct {
	driver.Driver
	seen []string
}

func (*labels) Capabilities() driver.Capabilities { return driver.Capabilities{Backend: "test"} }

func (d *labels) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	d.seen = append(d.seen, c.Label)
	return driver.Grant{Fence: 1}, nil
}

func (*labels) Release(context.Context, driver.Claim) error { return nil }

func TestTheDefaultLabelSaysWhoAndWhatFor(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	self := fmt.Sprintf("%s:%d", host, os.Getpid())
	route := WithOperation("POST /orders/:id/pay")
	for want, opts := range map[string][]Option{
		self:                           nil,
		self + " POST /orders/:id/pay": {route},
		self + " a?b?":                 {WithOperation("a\nb\xff")},
		"mine":                         {route, WithLabel("mine")},
		"mine, first":                  {WithLabel("mine, first"), route},
		"":                             {route, WithLabel("")},
	} {
		d := &labels{}
		locks, err := New(d)
		if err != nil {
			t.Fatal(err)
		}
		with, err := locks.With(opts...)
		if err != nil {
			t.Fatal(err)
		}
		for _, acquire := range []func() (*Lease, error){
			func() (*Lease, error) { return locks.Acquire(t.Context(), "name", opts...) },
			func() (*Lease, error) { return with.Acquire(t.Context(), "name") },
			func() (*Lease, error) { return with.Acquire(t.Context(), "name", WithTemplate("x")) },
		} {
			x, err := acquire()
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, got := range d.seen {
			if got != want {
				t.Errorf("%q, not %q", got, want)
			}
		}
	}
}

func TestTheDefaultLabelFitsAndIsText(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{strings.Repeat("x", 200), strings.Repeat("é", 99), strings.Repeat("\x80", 99), "\x80", strings.Repeat("\x00", 300)} {
		got := labelOf(thisProcess(), operation)
		if len(got) > maxDefaultLabel || !utf8.ValidString(got) || checkText("label", got, maxLabel) != nil {
			t.Errorf("%q", got)
		}
	}
}
