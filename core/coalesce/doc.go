// Package coalesce turns many calls for the same work into few runs. While work runs, one more call waits for it, and all
// further calls are done at once: the run of the one that waits begins after they came, so it sees their changes.
//
//	group, err := coalesce.New(locks)
//	...
//	err = group.Do(ctx, coalesce.Call{Name: "catalog:7", Work: "reindex", Wait: core.WaitForever}, rebuild)
//	if errors.Is(err, coalesce.ErrCovered) {
//		// rebuild will run, or runs for somebody else after this moment: answer 202, say
//	}
//
// Each call takes a second lock, of the one that waits. No key makes its name. For asynq
// there is taskmw.Coalesce.
package coalesce
