package servers

import (
	"slices"
	"strconv"
	"strings"
)

// certFile among the arguments of a Redis server makes it speak TLS.
const certFile = "--tls-cert-file"

// tlsPort is the port for TLS of a server at a port.
func tlsPort(port int) int { return port + 1 }

// tlsArgs have a Redis server speak TLS with clients and with other servers, if its own
// arguments name a certificate.
func tlsArgs(own []string, port int) []string {
	if !slices.Contains(own, certFile) {
		return nil
	}
	return []string{
		"--tls-port", strconv.Itoa(tlsPort(port)), "--tls-auth-clients", "yes", "--tls-replication", "yes", "--tls-cluster", "yes",
	}
}

// onlyTLS are those of a server's arguments that are about TLS: a Sentinel takes no others.
func onlyTLS(args []string) (of []string) {
	for i, arg := range args {
		if strings.HasPrefix(arg, "--tls-") && i+1 < len(args) {
			of = append(of, arg, args[i+1])
		}
	}
	return of
}
