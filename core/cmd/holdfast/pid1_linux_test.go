package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// In a container without an init, holdfast is the first process, and gets the children of those that have ended.
func TestAsTheFirstProcessOfAContainerItCollectsTheDead(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.first = true
	j := f.start("run", "job", "--", "sh", "-c", `echo $$ >self
		sh -c 'sleep 0.1 & echo $! >orphan'
		i=0; while kill -0 $(cat orphan); do i=$((i+1)); test $i -lt 100 || exit 9; sleep 0.05; done 2>/dev/null
		exit 7`)
	if status := j.exit(); status != 7 {
		t.Errorf("status %d, %q", status, j.err)
	}
}

// One of the group that has ended is not one that is left.
func TestAsTheFirstProcessOfAContainerItDoesNotWaitForTheDead(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.first = true
	j := f.start("run", "-ttl", "1s", "-grace", "5m", "job", "--", "sh", "-c",
		`trap "exit 3" TERM; sleep 1000 & sh -c 'sleep 1000 & echo $! >orphan'; wait`)
	j.file("orphan")
	f.seize("job")
	if status := j.exit(); status != lost {
		t.Errorf("status %d, %q", status, j.err)
	}
}

// firstProcess makes a command the first process of a namespace, as a container does.
func firstProcess(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	probe := exec.Command("true")
	attr := *cmd.SysProcAttr
	probe.SysProcAttr = &attr
	if err := probe.Run(); errors.Is(err, syscall.EPERM) {
		t.Skip("no namespaces here: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
}
