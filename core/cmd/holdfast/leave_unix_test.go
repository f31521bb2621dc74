//go:build unix

package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// A command that joins another process group gets no signal to its own one. It works without the lease then, and must be ended all
// the same; and holdfast must not wait for it for ever.
func TestALostLeaseEndsACommandThatHasLeftItsGroup(t *testing.T) {
	t.Parallel()
	perl := servers.Find(t, "perl", "perl-base")
	f := newFleet(t)
	for trap, grace := range map[string]string{"DEFAULT": "1m", "IGNORE": "1"} {
		j := f.start("run", "-ttl", "3s", "-grace", grace, trap, "--", perl, "-e",
			`$SIG{TERM} = "`+trap+`"; setpgrp(0, getpgrp(getppid())) or die $!; open(F, ">", "self"); print F $$; close(F); sleep 1000`)
		self := j.file("self")
		f.seize(trap)
		if status := j.exit(); status != lost {
			t.Errorf("%s: status %d, %q", trap, status, j.err)
		}
		j.gone(self)
	}
}
