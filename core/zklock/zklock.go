package zklock

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Store is a lock service on ZooKeeper. It implements driver.Driver; see [New].
type Store struct {
	*oldadapter.Driver
	inspect.Inspector
}

// store is a Store on the old contract.
type store struct {
	conn    *zk.Conn
	session *Session
	root    string
	acl     []zk.ACL

	mu      sync.Mutex                 // protects the fields below, and nodes as node says
	nodes   map[nodeKey]*node          // that this Store has, or may have, at the server
	watches map[string]<-chan zk.Event // by the path that is watched
	unused  map[string]*unused         // whose znodes are to be deleted soon
}

var (
	_ driver.Driver     = (*store)(nil)
	_ driver.Queuer     = (*store)(nil)
	_ driver.Validator  = (*store)(nil)
	_ driver.Inspector  = (*store)(nil)
	_ driver.IdleCloser = (*store)(nil)
)

// Option configures a [Store].
type Option interface{ apply(*store) }

type optionFunc func(*store)

func (f optionFunc) apply(s *store) { f(s) }

// WithRoot sets the path below which all znodes are. The default is "/holdfast". The path begins with
// a slash and must not end in one. Missing parts of it are created.
func WithRoot(path string) Option {
	return optionFunc(func(s *store) { s.root = path })
}

// WithACL sets the permissions on the znodes that the Store creates. The default lets everybody do
// everything, like ZooKeeper's own default. All programs that share names need all permissions except
// admin.
func WithACL(acl []zk.ACL) Option {
	return optionFunc(func(s *store) { s.acl = acl })
}

// New returns a Store that sends its requests through conn. The caller still configures and closes
// conn. The session must be the one whose Dial was given to conn, as [Session] shows. New does no
// I/O. core.New reports what cannot work: a missing conn or session, or an impossible root.
func New(conn *zk.Conn, session *Session, opts ...Option) *Store {
	s := newStore(conn, session, opts...)
	return &Store{oldadapter.New(s), s}
}

func newStore(conn *zk.Conn, session *Session, opts ...Option) *store {
	s := &store{
		conn: conn, session: session,
		root:    "/holdfast",
		acl:     zk.WorldACL(zk.PermAll),
		nodes:   make(map[nodeKey]*node),
		watches: make(map[string]<-chan zk.Event),
		unused:  make(map[string]*unused),
	}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// minTTL is the shortest TTL. Sessions last 4 s at least with ZooKeeper's default tick, so a
// dead holder is not noticed sooner; a shorter TTL would only make a loss of each stall.
const minTTL = 2 * time.Second

// Capabilities implements driver.Driver.
func (s *store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Backend: "zookeeper", Punctual: true, Fence: true, Shared: true, Limit: true, Detach: true, MinTTL: minTTL,
	}
}

// Validate implements driver.Validator.
func (s *store) Validate() error {
	switch {
	case s.conn == nil:
		return errors.New("zklock: no connection")
	case s.session == nil:
		return errors.New("zklock: no session")
	case len(s.acl) == 0:
		return errors.New("zklock: WithACL: empty; nobody could use the nodes")
	}
	if !strings.HasPrefix(s.root, "/") || strings.HasSuffix(s.root, "/") {
		return fmt.Errorf("zklock: WithRoot(%q): it has to begin with a slash and must not end in one", s.root)
	}
	for part := range strings.SplitSeq(s.root[1:], "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsFunc(part, forbidden) {
			return fmt.Errorf("zklock: WithRoot(%q): no path of ZooKeeper's", s.root)
		}
	}
	return nil
}

// forbidden are the characters that ZooKeeper does not take in paths.
func forbidden(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
