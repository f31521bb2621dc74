// Package cronmw has schedulers on many nodes run each job once: gocron v2, by its Locker, and
// robfig/cron v3, by a JobWrapper.
//
//	locker, err := cronmw.NewLocker(locks, "cron:{job}", core.WithMinHold(50*time.Second))
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
//	once := cronmw.SkipIfHeld(locks, "cron:report", logger, core.WithMinHold(50*time.Second))
//	c := cron.New()
//	c.AddJob("* * * * *", cron.NewChain(once).Then(report))
//
// # Once for each tick
//
// The nodes' schedulers do not fire at the same instant. [core.WithMinHold] keeps the job's name taken from
// the start of a run, so that those that fire late skip the run too. Choose it shorter than the period,
// and longer than the clocks differ. Without it, a job that is quicker than that runs more than once.
//
// Do not use [core.WithDedup] for this. Its window counts from the end of the work, so a long run
// swallows the next tick. And a run that fails leaves no marker, so a node that fires late runs it
// again at once. gocron does not tell whether a run failed, so [NewLocker] refuses WithDedup.
//
// A run that takes longer than the period makes all nodes skip the next tick.
package cronmw
