// Package chaos breaks Holdfast on real servers, in the manner of Jepsen: worker processes contend for a few names, each
// behind proxies of its own, while a seeded schedule of faults breaks the processes, the links and the servers. What every
// call was asked and answered is written to histories; of Redis, MONITOR tells what a server did, the only witness that is not our
// own code; and a resource keeps what was written to it. Afterwards the [Checkers] compare them.
//
//	make chaos SERVICE=postgres SEED=7 FOR=30s
//	go test . -run 'TestChaos$' -args -chaos.service postgres -chaos.seed 7 -chaos.for 30s -chaos.keep /tmp/run
//	go test . -run 'TestAKeptRunHasAnOrder$' -args -chaos.judge /tmp/run
//
// A seed gives the same faults and the same choices of every worker, not the same interleaving. The last command has porcupine
// judge a run that was kept.
//
// That the checkers can fail is shown by the mutants: patches that break one promise each, in mutants.txt.
package chaos
