package main

// architecture is the way of a request: to a name, to a lease, to the lock service; and of its
// writes to the storage.
func architecture() []byte {
	p := &picture{title: "A request becomes a name, core takes a lease of that name from a backend, and renews it until the work returns", height: 372}
	p.add(`<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path class="h" d="M0 0L8 4L0 8z"/></marker></defs>`)

	const top, high = 58.0, 40.0
	for _, column := range []struct {
		x    float64
		text string
	}{{71, "what comes in"}, {223, "middleware"}, {425, "core"}, {626, "lock service"}} {
		p.text(column.x, 34, "m", "middle", 12, column.text)
	}
	for i, pair := range [][3]string{
		{"HTTP request", "httpmw, echomw", "order:{id}"},
		{"gRPC call", "grpcmw", "order:{order.id}"},
		{"asynq task", "taskmw", "order:{order_id}"},
		{"your function", "Do, Wrap, Acquire", "order:42"},
	} {
		y := top + 50*float64(i)
		p.box(16, y, 110, high, "box", "*"+pair[0])
		p.box(154, y, 138, high, "box", "*"+pair[1], pair[2])
		p.arrow(126, y+high/2, 154, y+high/2)
		p.arrow(292, y+high/2, 320, y+high/2)
	}
	p.box(320, top, 210, 190, "key",
		"*one name: order:42", "", "waits in order of arrival", "takes a lease", "renews it each third of the TTL", "ends its context on a loss", "releases it")
	p.box(558, top, 146, 190, "box",
		"*one of these:", "", "Redis, Cluster", "redlock: a quorum", "PostgreSQL, MySQL", "SQLite", "ZooKeeper, etcd", "memcached", "memory, for tests")
	p.arrow(530, top+70, 558, top+70)
	p.arrow(558, top+120, 530, top+120)

	p.box(352, 300, 146, 48, "box", "*your handler", "ctx, fence")
	p.arrow(425, top+190, 425, 300)
	p.text(435, 279, "m", "start", 12, "runs under the lease")
	p.box(532, 300, 172, 48, "box", "*your storage", "refuses a smaller fence")
	p.arrow(498, 324, 532, 324)
	p.text(16, 320, "m", "start", 12, "Equal names exclude each other,")
	p.text(16, 337, "m", "start", 12, "at every entry and on every machine.")
	return p.bytes()
}

// box draws a box with lines of text in its middle.
func (p *picture) box(x, y, w, h float64, class string, lines ...string) {
	p.add(`<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="4"/>`, class, num(x), num(y), num(w), num(h))
	const lineHeight = 17.0
	first := y + h/2 - lineHeight*float64(len(lines)-1)/2 + 4
	for i, line := range lines {
		p.text(x+w/2, first+lineHeight*float64(i), "t", "middle", 12, line)
	}
}

func (p *picture) arrow(x1, y1, x2, y2 float64) {
	p.add(`<line class="a" marker-end="url(#head)" x1="%s" y1="%s" x2="%s" y2="%s"/>`, num(x1), num(y1), num(x2), num(y2))
}
