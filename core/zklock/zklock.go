package zklock

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Store is a lock service on ZooKeeper. It implements driver.Driver; see [New].
type Store struct {
	conn           *zk.Conn
	session        *Session
	root           string
	acl            []zk.ACL
	left, renewals abandoned // those that renew count apart: they must not suffer from impatient callers

	mu      sync.Mutex                 // protects the fields below, and nodes as node says
	nodes   map[key]*node              // that this Store has, or may have, at the server
	watches map[string]<-chan zk.Event // by the path that is watched
	idle    map[string]time.Time       // names whose znodes are to be deleted soon, and since when
	armed   bool                       // a timer runs for them

	tidying sync.Mutex // held while they are deleted
}

var (
	_ driver.Driver     = (*Store)(nil)
	_ driver.Closer     = (*Store)(nil)
	_ inspect.Inspector = (*Store)(nil)
)

// New returns a Store that sends its requests through conn. The caller still configures and closes
// conn. The session must be the one whose Dial was given to conn, as [Session] shows. New does no
// I/O. core.New reports what cannot work: a missing conn or session, or an impossible root.
func New(conn *zk.Conn, session *Session, opts ...Option) *Store {
	s := &Store{
		conn: conn, session: session,
		root:    "/holdfast",
		acl:     zk.WorldACL(zk.PermAll),
		nodes:   make(map[key]*node),
		watches: make(map[string]<-chan zk.Event),
		idle:    make(map[string]time.Time),
	}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// Option configures a [Store].
type Option interface{ apply(*Store) }

type optionFunc func(*Store)

func (f optionFunc) apply(s *Store) { f(s) }

// WithRoot sets the path below which all znodes are. The default is "/holdfast". The path begins with
// a slash and must not end in one. Missing parts of it are created.
func WithRoot(root string) Option {
	return optionFunc(func(s *Store) { s.root = root })
}

// WithACL sets the permissions on the znodes that the Store creates. The default lets everybody do
// everything, like ZooKeeper's own default. All programs that share names need all permissions except
// admin.
func WithACL(acl []zk.ACL) Option {
	return optionFunc(func(s *Store) { s.acl = acl })
}

// minTTL is the shortest TTL. Sessions last 4 s at least with ZooKeeper's default tick, so a
// dead holder is not noticed sooner; a shorter TTL would only make a loss of each stall.
const minTTL = 2 * time.Second

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	can := driver.Capabilities{
		Backend: "zookeeper", Err: s.validate(), Punctual: true, Hears: true, Queue: true,
		Fence: true, Shared: true, Limit: true, Detach: true, MinTTL: minTTL,
	}
	if can.Err == nil {
		can.Location = s.location()
	}
	return can
}

// location is the server. The client tries one after the other, and tells nobody why one of them failed.
func (s *Store) location() string {
	if s.connected() {
		return s.conn.Server()
	}
	return fmt.Sprintf("%s, without a session yet", cmp.Or(s.conn.Server(), "no server"))
}

func (s *Store) validate() error {
	switch {
	case s.conn == nil:
		return errors.New("zklock: no connection")
	case s.session == nil:
		return errors.New("zklock: no session")
	case len(s.acl) == 0:
		return errors.New("zklock: WithACL: empty; nobody could use the nodes")
	}
	if !strings.HasPrefix(s.root, "/") || s.root == "/" || path.Clean(s.root) != s.root || strings.ContainsFunc(s.root, forbidden) {
		return fmt.Errorf("zklock: WithRoot(%q): it must begin with a slash, not end in one, and be a path that ZooKeeper allows", s.root)
	}
	return nil
}

// forbidden are the characters that ZooKeeper does not take in paths.
func forbidden(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
