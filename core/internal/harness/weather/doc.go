// Package weather runs Holdfast in bad weather, in the manner of Jepsen: worker processes
// that contend for a few names on real redis-servers, with a TCP proxy between each of them and
// each server, while a seeded schedule of faults breaks the processes, the links and the servers.
// What every call was asked and answered is written to histories, what a server did is read
// from its MONITOR, and what a resource saw is kept by a store in a process of its own.
// Afterwards the checkers compare the three.
//
//	go test . -run 'TestWeather$' -args -weather.service redlock -weather.seed 7 -weather.for 30s
//
// The service is one server, with scripts or without, five for Redlock, a Cluster, or Sentinel, where
// a grant needs the master's word or, as "replicas", the replica's too.
//
// A seed gives the same schedule of faults and the same choices of every worker, not the
// same interleaving: processes and a network are not that obedient.
//
// That the checkers can fail is shown by the mutants: patches of core and redislock that
// break one promise each (see [Mutants]), of which each must turn a named checker red. The
// backends that are not Redis have a smaller storm, in core/internal/backendtest, and mutants that it must find.
//
// docs/guarantees.md lists the promises, and docs/verification.md what the checkers look for.
package weather
