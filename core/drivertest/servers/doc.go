// Package servers starts real servers for tests, on free ports of 127.0.0.1, and stops
// them: [Redis], [Cluster] and [Sentinel] of Redis, [Postgres], [MariaDB].
//
//	srv := servers.Redis(t)                       // one of its own, to be broken
//	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
//	srv.Kill()
//	srv.Restart()
//
// ZooKeeper, Etcd and NATS do the same. [RedisWithClock] has a clock that a test can set wrong.
//
// A package with many tests that do not disturb the server shares one:
//
//	var shared servers.SharedRedis
//
//	func TestSomething(t *testing.T) {
//		share := shared.Use(t)
//		store := redislock.New(dial(t, share.Addr), redislock.WithPrefix(share.Prefix))
//
// A server ends with the test that started it, or with the last one that shares it. On
// Linux it also ends when the test binary is killed.
//
// A server that is not installed is a logged skip, or a failure where the environment says
// HOLDFAST_REQUIRE_SERVERS=1; see [Find]. Where root runs the test, those that refuse to be
// root run as the account that their Debian package makes. Windows can compile this package;
// the faults that need signals fail the test there.
package servers
