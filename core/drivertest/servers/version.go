package servers

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"time"
)

var versionPattern = regexp.MustCompile(`\d+\.\d+`)

// Version is the server's major and minor version, such as "7.0".
func (s *Server) Version() string {
	s.tb.Helper()
	ask := s.product.version
	if ask == nil {
		ask = s.versionFlag
	}
	answer, err := ask(s.Addr())
	version := versionPattern.FindString(answer)
	if err == nil && version == "" {
		err = errors.New(answer)
	}
	if err != nil {
		s.tb.Errorf("servers: the version of %s: %v", s.product.binary, err)
	}
	return version
}

// versionFlag is what the binary says of itself.
func (s *Server) versionFlag(string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.path, "--version").Output() //nolint:gosec // G204: the server that runs
	return string(out), err
}
