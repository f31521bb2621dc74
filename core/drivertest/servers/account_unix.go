//go:build unix

package servers

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// runAs makes the command run as the account where root runs the test: some servers refuse
// to be root. Else it runs as whoever runs the test.
func runAs(cmd *exec.Cmd, account string) error {
	uid, gid, err := idOf(account)
	if err != nil || uid == 0 {
		return err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return nil
}

// give makes a file the account's, where runAs needs it to be.
func give(path, account string) error {
	uid, gid, err := idOf(account)
	if err != nil || uid == 0 {
		return err
	}
	return os.Chown(path, int(uid), int(gid))
}

// idOf is 0 where the account does not matter.
func idOf(account string) (uid, gid uint32, err error) {
	if account == "" || os.Getuid() != 0 {
		return 0, 0, nil
	}
	u, err := user.Lookup(account)
	if err != nil {
		return 0, 0, fmt.Errorf("root cannot run the server: %w", err)
	}
	ids := make([]uint32, 0, 2)
	for _, text := range []string{u.Uid, u.Gid} {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return 0, 0, err
		}
		ids = append(ids, uint32(id))
	}
	return ids[0], ids[1], nil
}
