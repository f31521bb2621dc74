package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/inspector"
)

func TestOnlyAProxyThatIsTrustedSaysWhoAsks(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"X-Forwarded-User", "X-Auth-Request-User", "Remote-User"} {
		r := httptest.NewRequest(http.MethodPost, "/release", http.NoBody)
		r.Header.Set(header, "mallory")
		if who, err := whoever(false)(r, inspector.Action{}); err != nil || strings.Contains(who, "mallory") {
			t.Errorf("%s: %q, %v", header, who, err)
		}
		if who, err := whoever(true)(r, inspector.Action{}); err != nil || !strings.HasPrefix(who, "mallory ("+header+")") {
			t.Errorf("%s, with a proxy: %q, %v", header, who, err)
		}
	}
}

func TestOnlyTheNameOfThePageReachesIt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, host string
		passes     bool
	}{
		{"", "127.0.0.1:8420", true},
		{"", "[::1]:8420", true},
		{"", "[::1]", true},
		{"", "10.0.0.5", true},
		{"", "localhost:8420", true},
		{"", "attacker.example", false},
		{"", "127.0.0.1.attacker.example:8420", false},
		{"locks.example", "locks.example", true},
		{"locks.example", "LOCKS.example:443", true},
		{"locks.example", "10.0.0.5:8420", false}, // past the proxy and its login
		{"locks.example", "127.0.0.1:8420", false},
		{"locks.example", "[::1]:8420", false},
		{"locks.example", "localhost:8420", false},
		{"locks.example", "attacker.example", false},
		{"10.0.0.5", "10.0.0.5:8420", true},
		{"10.0.0.5", "10.0.0.6:8420", false},
		{"::1", "[::1]:8420", true},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = row.host
		reached := false
		onlyAs(row.name, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })).ServeHTTP(w, r)
		if reached != row.passes || !row.passes && w.Code != http.StatusMisdirectedRequest {
			t.Errorf("-host %q, Host %q: reached %t, status %d", row.name, row.host, reached, w.Code)
		}
	}
}
