package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/inspector"
)

// ui is the command of that name: it serves the page until ctx ends.
func (p *program) ui(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	listen := flags.String("listen", "127.0.0.1:8420", "`host:port` to serve the page at")
	name := flags.String("host", "", "the one `name` by which browsers reach it, as behind a proxy; all others are refused then")
	proxy := flags.Bool("trust-proxy", false, "a proxy with a login stands in front: for the audit record, believe its X-Forwarded-User, X-Auth-Request-User or Remote-User")
	allow := flags.Bool("allow-release", false, "let everybody who reaches the page take locks from their holders, and remove markers")
	if err := p.arguments(flags, args, 0); err != nil {
		return misused, err
	}
	s, err := at.open(ctx)
	if err != nil {
		return failed, err
	}
	defer s.close(ctx)
	var c net.ListenConfig
	lis, err := c.Listen(ctx, "tcp", *listen)
	if err != nil {
		return failed, fmt.Errorf("-listen: %w", err)
	}
	defer lis.Close()
	if *allow && !loopback(lis.Addr()) && *name == "" {
		return misused, p.misuse("ui: -allow-release with -listen %s: the whole network could take locks away; "+
			"listen at 127.0.0.1, or put a proxy with a login in front and give its name with -host", *listen)
	}
	opts := []inspector.Option{
		inspector.WithTitle(s.Place + " · " + s.Prefix), inspector.WithLogger(slog.New(slog.NewTextHandler(p.err, nil))),
	}
	if *allow {
		opts = append(opts, inspector.WithAuthorization(whoever(*proxy)))
	}
	page := inspector.New(s.locks, opts...)
	defer page.Close()
	if _, err := fmt.Fprintf(p.out, "http://%s/\n", lis.Addr()); err != nil {
		return failed, err
	}
	return done, serve(ctx, lis, page, *name)
}

func loopback(addr net.Addr) bool {
	at, err := netip.ParseAddrPort(addr.String())
	return err == nil && at.Addr().IsLoopback()
}

// whoever is at this machine, or behind the proxy, may. The audit record says who the proxy says it is, if there is
// one: without it, anybody can send its headers.
func whoever(proxy bool) func(*http.Request, inspector.Action) (string, error) {
	who := "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	return func(r *http.Request, _ inspector.Action) (string, error) {
		for _, header := range []string{"X-Forwarded-User", "X-Auth-Request-User", "Remote-User"} {
			if by := r.Header.Get(header); proxy && by != "" {
				return fmt.Sprintf("%s (%s), through holdfast ui of %s", by, header, who), nil
			}
		}
		return who + " through holdfast ui", nil
	}
}

// serve also looks while nobody watches: a page that runs alone is there to have a past.
func serve(ctx context.Context, lis net.Listener, page *inspector.Handler, name string) error {
	server := &http.Server{Handler: onlyAs(name, page), ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(page.Close)
	watching := make(chan struct{})
	go func() { defer close(watching); page.Watch(ctx) }()
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	defer stop()
	err := server.Serve(lis)
	page.Close()
	<-watching
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// onlyAs refuses requests under a name that is not ours: a page of another site can have its name point to
// this machine, and would be of the same origin then (DNS rebinding). If a name is given, it is the only one: by
// an address, browsers would pass by the proxy and its login.
func onlyAs(name string, next http.Handler) http.Handler {
	own, _ := os.Hostname()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		_, notAddr := netip.ParseAddr(host)
		ours := notAddr == nil || strings.EqualFold(host, "localhost") || strings.EqualFold(host, own)
		if name != "" {
			ours = strings.EqualFold(host, name)
		}
		if !ours {
			http.Error(w, "holdfast ui: unknown host name; -host says by which it is reached", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
