package zklock

import (
	"errors"
	"net/url"
	"strings"

	"github.com/go-zookeeper/zk"
)

// dir is the znode whose children are the queue for name.
func (s *Store) dir(name string) string {
	part := url.PathEscape(name)
	if strings.Trim(part, ".") == "" { // a relative path to ZooKeeper
		part = strings.ReplaceAll(part, ".", "%2E")
	}
	return s.root + "/" + part
}

// ownDir is the data of a name's parent that this package has made. The server does not say what is a container.
const ownDir = "holdfast"

// makeDir makes a name's parent, as a container: what no Store deletes, see [Store.tidy], the server deletes some time after
// its last child has gone.
func (t *call) makeDir(name string) error {
	err := t.make(t.dir(name), zk.FlagContainer)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for i, r := range t.root + "/" {
		if r == '/' && i > 0 {
			if err := t.make(t.root[:i], zk.FlagPersistent); err != nil {
				return err
			}
		}
	}
	return t.make(t.dir(name), zk.FlagContainer)
}

// make creates a znode, unless it is there. That grants nothing to anybody.
func (t *call) make(path string, flag int32) error {
	err := t.read(func() error {
		create, data := t.conn.Create, ""
		if flag == zk.FlagContainer {
			create, data = t.conn.CreateContainer, ownDir
		}
		_, err := create(path, []byte(data), flag, t.acl)
		return err
	})
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}
