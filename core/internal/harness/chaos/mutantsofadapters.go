//go:build linux

package chaos

import "slices"

// mutantsOfAdapters break what the middleware of gRPC and asynq refuses. No fault run shows that: a test does.
func mutantsOfAdapters() []Mutant {
	return slices.Concat(mutantsOfTasks(), mutantsOfCoalescing(), mutantsOfRPC(), mutantsOfRefusals())
}

func mutantsOfTasks() []Mutant {
	return []Mutant{
		{
			Name: "refusal: a task without a usable key is retried",
			File: "taskmw/outcome.go",
			Old:  "return fmt.Errorf(\"taskmw: %w: %w\", err, asynq.SkipRetry)",
			New:  "return fmt.Errorf(\"taskmw: %w\", err)",
			Test: "taskmw TestTheTable",
		},
		{
			Name: "refusal: a held lock is a task's failure",
			File: "taskmw/configure.go",
			Old:  "postponement(err) == nil && isFailure(err)",
			New:  "isFailure(err)",
			Test: "taskmw TestWhatBecomesOfATaskThatDoesNotRun",
		},
		{
			Name: "refusal: a server without Configure runs tasks",
			File: "taskmw/middleware.go",
			Old:  "if ctx.Value(configured{}) == nil {",
			New:  "if false {",
			Test: "taskmw TestWhatBecomesOfATaskThatDoesNotRun",
		},
		{
			Name: "refusal: a handler that has lost its lock has the last word",
			File: "taskmw/outcome.go",
			Old:  "case out.Reason == adapter.Lost && isFinal(out.Own):",
			New:  "case false:",
			Test: "taskmw TestWhatAHandlerReturns",
		},
		{
			Name: "refusal: a task is finished for its own earlier delivery",
			File: "taskmw/conflict.go",
			Old:  "held.Label != a.label && ",
			New:  "",
			Test: "taskmw TestActionsDependOnTheHolder",
		},
		{
			Name: "refusal: a task runs under a hand-off of another name",
			File: "taskmw/middleware.go",
			Old:  "if len(names) > 1 || names[0] != a.handoff.Name() {",
			New:  "if false {",
			Test: "taskmw TestATaskThatIsArchivedUnrunFreesTheNameItWasHanded",
		},
		{
			Name: "refusal: the hand-off of a task that never runs stays",
			File: "taskmw/middleware.go",
			Old:  "\t\tm.giveBack(ctx, handoff)\n",
			New:  "",
			Test: "taskmw TestATaskThatIsArchivedUnrunFreesTheNameItWasHanded",
		},
		{
			Name: "refusal: what is no hand-off is none",
			File: "taskmw/middleware.go",
			Old:  "\tcase err != nil:\n\t\treturn archived(err)",
			New:  "\tcase err != nil:\n\t\treturn next.ProcessTask(ctx, t)",
			Test: "taskmw TestWhatIsNoHandoffIsArchived",
		},
		{
			Name: "refusal: a task's header needs no form",
			File: "core/adapter/document.go",
			Old:  "return Text(func(_ context.Context, req R) (string, error) { return text",
			New:  "return Typed(func(_ context.Context, req R) (string, error) { return text",
			Test: "taskmw TestWrongRulesAreConstructionErrors",
		},
		{
			Name: "refusal: a pattern of task types is any text",
			File: "taskmw/rule.go",
			Old:  "checkPattern(r.pattern, prefix)",
			New:  "checkPattern(\"a\", \"\")",
			Test: "taskmw TestWrongRulesAreConstructionErrors",
		},
		{
			Name: "refusal: a pattern has two rules",
			File: "taskmw/rule.go",
			Old:  "if err == nil && slices.ContainsFunc(m.rules, isRepeat) {",
			New:  "if err == nil && slices.ContainsFunc(m.rules[:0], isRepeat) {",
			Test: "taskmw TestWrongRulesAreConstructionErrors",
		},
		{
			Name: "refusal: a task that holds one of several names does the same work",
			File: "taskmw/rule.go",
			Old:  "case several && (",
			New:  "case several && prefix == \"*\" && (",
			Test: "taskmw TestWrongRulesAreConstructionErrors",
		},
		{
			Name: "refusal: an action that is none is one",
			File: "taskmw/rule.go",
			Old:  "case r.action > Coalesce:",
			New:  "case r.action > Coalesce+1:",
			Test: "taskmw TestWrongRulesAreConstructionErrors",
		},
		{
			Name: "refusal: a conflict is retried after any time",
			File: "taskmw/middleware.go",
			Old:  "if d < 0 || d > 365*24*time.Hour {",
			New:  "if d == -2 {",
			Test: "taskmw TestTheConflictDelayIsTheLastOneAndNothingImpossible",
		},
		{
			Name: "refusal: options of a task that is handed over are lost",
			File: "taskmw/handover.go",
			Old:  "case hasOptions(task):",
			New:  "case false:",
			Test: "taskmw TestWhatCannotBeHandedOverStaysWithTheRequest",
		},
		{
			Name: "refusal: the hand-off of a group's task is lost",
			File: "taskmw/handover.go",
			Old:  "case asynq.GroupOpt:",
			New:  "case -1:",
			Test: "taskmw TestWhatCannotBeHandedOverStaysWithTheRequest",
		},
		{
			Name: "refusal: a name comes free before the task that it is handed to starts",
			File: "taskmw/handover.go",
			Old:  "if in >= keep {",
			New:  "if in < 0 {",
			Test: "taskmw TestWhatCannotBeHandedOverStaysWithTheRequest",
		},
		{
			Name: "refusal: a conflict that outlasts the task's time is a failure",
			File: "taskmw/middleware.go",
			Old:  "wait = min(a.rule.Locker().Wait(), patience)",
			New:  "wait = a.rule.Locker().Wait()",
			Test: "taskmw TestWaitWaitsAsLongAsTheTasksTimeAllows",
		},
		{
			Name: "refusal: a panic of a key function keeps the name that its task was handed",
			File: "taskmw/middleware.go",
			Old:  "// also if a key function panics\n",
			New:  "\n\t\tif r := recover(); r != nil {\n\t\t\tpanic(r)\n\t\t}\n",
			Test: "taskmw TestATaskThatFailsUnrunOnItsLastAttemptFreesTheNameItWasHanded",
		},
		{
			Name: "refusal: a task whose time is over keeps the name it was handed",
			File: "taskmw/middleware.go",
			Old:  "a.last && !errors.Is(ctx.Err(), context.Canceled)",
			New:  "a.last && ctx.Err() == nil",
			Test: "taskmw TestATaskThatFailsUnrunOnItsLastAttemptFreesTheNameItWasHanded",
		},
		{
			Name: "refusal: a server that drains archives a last attempt",
			File: "taskmw/middleware.go",
			Old:  "if a.last && errors.Is(out.Err, core.ErrDraining) && !a.ran {",
			New:  "if a.last && errors.Is(out.Err, core.ErrDraining) && a.ran {",
			Test: "taskmw TestADrainingServerPutsTasksBack",
		},
		{
			Name: "refusal: dedup of one task type counts for another",
			File: "taskmw/rule.go",
			Old:  "if many && window > 0 {",
			New:  "if false && many && window > 0 {",
			Test: "taskmw TestTheDedupScopeIsTheTaskType",
		},
	}
}

func mutantsOfCoalescing() []Mutant {
	return []Mutant{
		{
			Name: "refusal: calls share the answer of one that does not wait",
			File: "core/internal/contend/caller.go",
			Old:  "\t\ts := c.leaves(c.line.GaveUp(), r.Now.Awake(), r.Now.Awake())\n",
			New:  "\t\tif m.Held != nil {\n\t\t\tc.line.Tell(News{Held: m.Held, At: r.Now.Awake()})\n\t\t}\n\t\ts := c.leaves(m.Held == nil && c.line.GaveUp(), r.Now.Awake(), r.Now.Awake())\n",
			Test: "core/coalesce TestAnAnswerFromBeforeTheCallCoversNothing",
		},
		{
			Name: "refusal: a call is covered by its own earlier attempt",
			File: "core/coalesce/coalesce.go",
			Old:  "ok && (c.Self == \"\" || held.Label != c.Self)",
			New:  "ok && held != nil",
			Test: "core/coalesce TestACallIsNotCoveredByItsOwnEarlierAttempt",
		},
		{
			Name: "refusal: work runs though its place may be taken",
			File: "core/coalesce/coalesce.go",
			Old:  "if err := waiter.Release(ctx); err != nil {",
			New:  "if err := waiter.Release(ctx); err != nil && ctx == nil {",
			Test: "core/coalesce TestWorkRunsOnlyOnceItsPlaceIsKnownToBeFree",
		},
		{
			Name: "refusal: coalescing goes with dedup",
			File: "core/coalesce/coalesce.go",
			Old:  "window > 0",
			New:  "window < 0",
			Test: "core/coalesce TestWhatCannotWorkIsRefused",
		},
		{
			Name: "refusal: a waiter goes local",
			File: "core/coalesce/coalesce.go",
			Old:  "core.OnUnavailable(core.FailClosed))",
			New:  "core.WithWait(0))",
			Test: "core/coalesce TestWorkDoesNotRunWithoutTheServiceWhateverThePolicy",
		},
		{
			Name: "refusal: other work under a name is the same",
			File: "core/coalesce/coalesce.go",
			Old:  "c.Work, c.Name))",
			New:  "\"\", c.Name))",
			Test: "core/coalesce TestOtherWorkUnderTheNameIsNotCovered",
		},
		{
			Name: "refusal: of two fences the first one counts",
			File: "core/fence/carry.go",
			Old:  "if len(values) != 1 {",
			New:  "if len(values) == 0 {",
			Test: "core/fence TestParseTakesDecimalDigitsOnly",
		},
	}
}

func mutantsOfRPC() []Mutant {
	return []Mutant{
		{
			Name: "refusal: a request of another type has the fields",
			File: "grpcmw/source.go",
			Old:  "!ok || m.ProtoReflect().Descriptor() != input",
			New:  "!ok",
			Test: "grpcmw TestAFaultOfTheProgramIsInternalAndLoggedOnce",
		},
		{
			Name: "refusal: a client of gRPC gets core's text",
			File: "grpcmw/status.go",
			Old:  "\treturn answerTo(own)\n",
			New:  "\treturn nil\n",
			Test: "grpcmw TestTheTable",
		},
		{
			Name: "refusal: a stock client repeats what was begun",
			File: "grpcmw/status.go",
			Old:  "return &answer{s, pushbackStop, cause}",
			New:  "return &answer{s, \"\", cause}",
			Test: "grpcmw TestTheTable",
		},
		{
			Name: "refusal: a refusal of gRPC says when not to come again",
			File: "grpcmw/status.go",
			Old:  "\ta.pushback = \"\"\n",
			New:  "",
			Test: "grpcmw TestTheTable",
		},
		{
			Name: "refusal: a key function that fails with OK is a success",
			File: "grpcmw/status.go",
			Old:  " && own.GRPCStatus().Code() != codes.OK {",
			New:  " {",
			Test: "grpcmw TestTheTable",
		},
		{
			Name: "refusal: of several values of metadata the first one counts",
			File: "grpcmw/source.go",
			Old:  "return adapter.Only(metadata.ValueFromIncomingContext(ctx, wanted))",
			New:  "return append(metadata.ValueFromIncomingContext(ctx, wanted), \"\")[0], nil",
			Test: "grpcmw TestTheTable",
		},
		{
			Name: "refusal: a field that is not set names a lock",
			File: "grpcmw/source.go",
			Old:  "if !msg.Has(leaf) {",
			New:  "if !msg.Has(leaf) && leaf.HasPresence() {",
			Test: "grpcmw TestTheTable",
		},
		{
			Name: "refusal: a stream of messages is locked by one of them",
			File: "grpcmw/rule.go",
			Old:  "if fromMessage && m.IsStreamingClient() {",
			New:  "if fromMessage && m.IsStreamingClient() && k.String() == \"\" {",
			Test: "grpcmw TestAKeyOfTheMessagesOfAClientsStreamIsRefusedAtTheStart",
		},
		{
			Name: "refusal: a stream sends after a loss",
			File: "grpcmw/stream.go",
			Old:  "func (s *stream) SendMsg(m any) error {\n\tif err := s.standing(); err != nil {",
			New:  "func (s *stream) SendMsg(m any) error {\n\tif err := s.standing(); err != nil && m == nil {",
			Test: "grpcmw TestNothingPassesAStreamThatHasLostItsLock",
		},
		{
			Name: "refusal: the message of a stream is handed to any type",
			File: "grpcmw/stream.go",
			Old:  "!ok || msg.ProtoReflect().Descriptor() != s.first.ProtoReflect().Descriptor()",
			New:  "!ok",
			Test: "grpcmw TestTheMessageIsHandedToItsOwnTypeOnly",
		},
		{
			Name: "refusal: metadata needs no form",
			File: "grpcmw/source.go",
			Old:  "return adapter.Text(",
			New:  "return adapter.Typed(",
			Test: "grpcmw TestRulesThatCannotWorkAreConstructionErrors",
		},
		{
			Name: "refusal: bytes name a lock",
			File: "grpcmw/source.go",
			Old:  "case protoreflect.BytesKind, ",
			New:  "case ",
			Test: "grpcmw TestRulesThatCannotWorkAreConstructionErrors",
		},
		{
			Name: "refusal: a list names a lock",
			File: "grpcmw/source.go",
			Old:  "if fd.Cardinality() == protoreflect.Repeated {",
			New:  "if fd.Cardinality() == protoreflect.Repeated && fd.IsMap() {",
			Test: "grpcmw TestRulesThatCannotWorkAreConstructionErrors",
		},
		{
			Name: "refusal: binary metadata names a lock",
			File: "grpcmw/source.go",
			Old:  "case strings.HasSuffix(wanted, \"-bin\"):",
			New:  "case wanted == \"-bin\":",
			Test: "grpcmw TestRulesThatCannotWorkAreConstructionErrors",
		},
		{
			Name: "refusal: a method is listed twice",
			File: "grpcmw/rule.go",
			Old:  "if b.rules[full] != nil {",
			New:  "if b.rules[full] != nil && m == nil {",
			Test: "grpcmw TestRulesThatCannotWorkAreConstructionErrors",
		},
		{
			Name: "refusal: a key function takes any message",
			File: "grpcmw/rule.go",
			Old:  "takes != m.Input().FullName() {",
			New:  "takes == \"\" {",
			Test: "grpcmw TestRulesThatCannotWorkAreConstructionErrors",
		},
		{
			Name: "refusal: a key function may be nil",
			File: "grpcmw/rule.go",
			Old:  "if key == nil {",
			New:  "if key == nil && b == nil {",
			Test: "grpcmw TestRulesThatCannotWorkAreConstructionErrors",
		},
		{
			Name: "refusal: a method has many spellings",
			File: "grpcmw/rule.go",
			Old:  "err != nil || !ok || fullName(m) != full",
			New:  "err != nil || !ok",
			Test: "grpcmw TestRulesThatCannotWorkAreConstructionErrors",
		},
		{
			Name: "refusal: an annotation of a newer version is half of one",
			File: "grpcmw/annotation.go",
			Old:  "if len(r.ProtoReflect().GetUnknown()) > 0 {",
			New:  "if r == nil {",
			Test: "grpcmw TestAnnotationThatCannotWorkIsAConstructionErrorThatNamesItsMethod",
		},
		{
			Name: "refusal: an annotation is shared and has a limit",
			File: "grpcmw/annotation.go",
			Old:  "case r.GetShared() && r.Limit != nil:",
			New:  "case r == nil:",
			Test: "grpcmw TestAnnotationThatCannotWorkIsAConstructionErrorThatNamesItsMethod",
		},
	}
}
