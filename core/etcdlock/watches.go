package etcdlock

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// watches are those of places, from one call of Wait to the next. Each new stream costs the server an authentication, where
// there are users and passwords.
type watches struct {
	mu sync.Mutex       // protects the field below
	m  map[string]*idle // by the keys of the places
}

type idle struct {
	watch

	ends *time.Timer
}

// take returns the watch of a place, if there is one.
func (k *watches) take(place string) watch {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := k.m[place]
	if i == nil {
		return watch{}
	}
	i.ends.Stop()
	delete(k.m, place)
	return i.watch
}

// keep keeps the watch of a place for a while.
func (k *watches) keep(place string, w watch, while time.Duration) {
	if w.key == "" {
		return
	}
	k.end(place)
	i := &idle{watch: w}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = make(map[string]*idle)
	}
	k.m[place] = i
	i.ends = time.AfterFunc(while, func() { k.over(place, i) })
}

// end ends the watch of a place, if there is one.
func (k *watches) end(place string) {
	w := k.take(place)
	w.end()
}

// over ends i, unless somebody has taken it.
func (k *watches) over(place string, i *idle) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m[place] == i {
		delete(k.m, place)
		i.end()
	}
}

// endAll ends all.
func (k *watches) endAll() {
	k.mu.Lock()
	places := slices.Collect(maps.Keys(k.m))
	k.mu.Unlock()
	for _, place := range places {
		k.end(place)
	}
}
