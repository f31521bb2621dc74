// Package inspector is a web page that shows who holds which lock, who waits, and what has happened in the
// last 15 minutes. It is an http.Handler, to mount in a service:
//
//	seen := inspector.NewRecorder()
//	locks, err := core.New(driver, core.WithObserver(seen.Observe))
//	…
//	page := inspector.New(locks, inspector.WithRecorder(seen))
//	defer page.Close()
//	mux.Handle("/locks/", requireLogin(page))
//
// The command holdfast ui serves the same page alone.
//
// Everybody who reaches the page can see names and labels, so mount it behind the middleware that knows who
// may. It changes nothing, unless [WithAuthorization] is given: then a lock can be taken from its holder.
//
// # What it costs
//
// While somebody watches, it looks at the lock service once a second, however many browsers there are.
// Nobody watches, nothing is asked. To find all names is to walk through them, in Redis through all keys of
// the database; walks take a twentieth of the time at most, and in between only the known names are looked
// at. The page says how old it may be.
//
// What has happened comes from the looks, so a lease that lasts for less than a second is mostly missed.
// With a [Recorder], the leases and waits of this process are all there, also from before somebody
// watched. The memory that this takes is bounded.
//
// # Where it can be mounted
//
// Under any path, with http.StripPrefix or without, and behind a proxy that strips a part of the path: all
// links are relative. The path of the page ends in a slash. The page is live by server-sent events: a proxy
// must not buffer them, and a server's WriteTimeout is lifted for them. End them with [Handler.Close] before
// http.Server.Shutdown, which waits for them otherwise:
//
//	server.RegisterOnShutdown(page.Close)
//
// # Security
//
// The policy of the page forbids everything that does not come from itself: no inline script or style, no
// frames, no other origin. Names and labels are only ever shown as text. A change is a POST of JSON with a
// header of its own, which no other site can send; browsers say where a request comes from, too, and one
// from elsewhere is refused.
package inspector
