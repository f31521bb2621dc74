package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func TestALateCommitIsRefused(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	url := "postgres://postgres@" + servers.Postgres(t).Addr() + "/postgres?sslmode=disable"
	if err := story(t.Context(), &out, url, false); err != nil || !strings.Contains(out.String(), "no longer held") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	if err := story(t.Context(), &out, url, true); err == nil || err.Error() != "the late write got in" {
		t.Errorf("without a look before the commit: %v", err)
	}
}
