// Package baseline runs other lock libraries in the weather of core/internal/weather, for what
// their locks are worth on a bad day: the same faults from the same seed, the same work, the
// same checkers.
//
//	go test ./baseline -v -args -baseline.for 30s -baseline.seed 1
//
// Only faults that no library need fear come: those of processes, of links, and of a server that
// is slow or full but forgets nothing. So every overlap is the library's own.
//
// What counts as trust is what each library tells its user. rueidislock has a context. redsync
// and bsm/redislock have no watchdog: the application extends, here every third of the TTL, and
// trusts a lock until one TTL after the request that last succeeded began, less what redsync
// takes off for drift. The application could hardly do better.
package baseline
