package backend

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// address is a URL that may have several hosts.
type address struct {
	scheme string
	user   *url.Userinfo
	hosts  []string // as host:port, or as they were given if the kind has a default port
	path   string   // unescaped
	query  url.Values
}

// errURL says nothing of the URL, nor do the errors of its parsers come out: either may have a
// password, or the part of one that stands behind a '/', which ends the host.
var errURL = errors.New("URL: not of the form scheme://[user:password@]host:port[,host:port…][/path][?name=value]; " +
	"what is special in a password, and an @ in a parameter, is percent-encoded there")

// parse splits the hosts by itself: net/url takes one only.
func parse(raw string) (*address, error) {
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok || scheme == "" || strings.ContainsAny(scheme, "/@?#") {
		return nil, errURL
	}
	a := &address{scheme: strings.ToLower(scheme)}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		end := strings.IndexAny(after, "/?#")
		if end < 0 {
			end = len(after)
		}
		var err error
		if a.user, a.hosts, err = authority(after[:end]); err != nil {
			return nil, err
		}
		rest = after[end:]
	} else if a.scheme != "sqlite" {
		return nil, errURL
	}
	u, err := url.Parse("x:///" + strings.TrimPrefix(rest, "/"))
	if err != nil || u.Fragment != "" {
		return nil, errURL
	}
	if a.path = u.Path; !strings.HasPrefix(rest, "/") {
		a.path = strings.TrimPrefix(u.Path, "/")
	}
	if strings.Contains(a.path+u.RawQuery, "@") && a.scheme != "sqlite" {
		return nil, errURL // behind the '/' or '?' of a password that is not encoded
	}
	if a.query, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, errURL
	}
	return a, nil
}

func authority(text string) (user *url.Userinfo, hosts []string, err error) {
	all := text
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		u, err := url.Parse("x://" + text[:at+1] + "host")
		if err != nil {
			return nil, nil, errURL
		}
		user, all = u.User, text[at+1:]
	}
	if all == "" {
		return user, nil, nil
	}
	for host := range strings.SplitSeq(all, ",") {
		u, err := url.Parse("x://" + host)
		if err != nil || u.Host != host || host == "" {
			return nil, nil, errURL
		}
		hosts = append(hosts, host)
	}
	return user, hosts, nil
}

// String has no password and no parameters, which may be one.
func (a *address) String() string {
	var user string
	if name := a.user.Username(); name != "" {
		user = url.User(name).String() + "@"
	}
	if a.hosts == nil && user == "" {
		return a.scheme + ":" + a.path
	}
	return a.scheme + "://" + user + strings.Join(a.hosts, ",") + a.path
}

// password is that of the URL, or else the other one.
func (a *address) password(other string) string {
	if p, ok := a.user.Password(); ok {
		return p
	}
	return other
}

// take removes a parameter of ours from those of the client library.
func (a *address) take(name string) string {
	defer a.query.Del(name)
	return a.query.Get(name)
}

// noPrefix refuses a prefix where names do not begin with one: whoever gives it means to share the locks of programs
// that are elsewhere.
func (a *address) noPrefix(instead string) error {
	if a.query.Has("prefix") {
		return errors.New("there is no prefix here; use " + instead)
	}
	return nil
}

// leftovers refuses parameters where the client library has none.
func (a *address) leftovers() error {
	for name := range a.query {
		return fmt.Errorf("unknown parameter %q", name)
	}
	return nil
}

// ports gives every host a port. At least one host is needed, or else there is a default.
func (a *address) ports(host, port string) ([]string, error) {
	if a.hosts == nil {
		if host == "" {
			return nil, errors.New("no host")
		}
		a.hosts = []string{net.JoinHostPort(host, port)}
	}
	for i, h := range a.hosts {
		if _, _, err := net.SplitHostPort(h); err != nil {
			a.hosts[i] = net.JoinHostPort(strings.Trim(h, "[]"), port)
		}
	}
	return a.hosts, nil
}
