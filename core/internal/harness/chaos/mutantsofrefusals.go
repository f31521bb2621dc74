//go:build linux

package chaos

import "slices"

// mutantsOfRefusals are those of the middleware that a fault run does not show, beside mutantsOfAdapters and mutantsOfHTTP.
func mutantsOfRefusals() []Mutant {
	return slices.Concat(mutantsOfJobs(), mutantsOfConnect(), mutantsOfFields(), mutantsOfTheCommand(), mutantsOfAnswers())
}

// mutantsOfConnect break what Connect's clients are told, and what its streams refuse.
func mutantsOfConnect() []Mutant {
	return []Mutant{
		{
			Name: "refusal: a client of Connect takes the lock itself",
			File: "grpcmw/connectmw/interceptor.go",
			Old:  "if req.Spec().IsClient {",
			New:  "if false {",
			Test: "grpcmw/connectmw TestMethodsWithoutARuleAndClientsAreNotLocked",
		},
		{
			Name: "refusal: a handler of Connect has no lock in its stream's context",
			File: "grpcmw/connectmw/interceptor.go",
			Old:  "next(locked.Context(),",
			New:  "next(ctx,",
			Test: "grpcmw/connectmw TestALostStreamEnds",
		},
		{
			Name: "refusal: Connect's stream sends after a loss",
			File: "grpcmw/connectmw/stream.go",
			Old:  "translate(c.locked.SendMsg(m))",
			New:  "c.StreamingHandlerConn.Send(m)",
			Test: "grpcmw/connectmw TestALostStreamEnds",
		},
		{
			Name: "refusal: a refusal of Connect does not say when to come again",
			File: "grpcmw/connectmw/answer.go",
			Old:  "translated.Meta().Set(\"Retry-After\",",
			New:  "translated.Meta().Set(\"Retry\",",
			Test: "grpcmw/connectmw TestAHeldLockTellsHTTPClientsWhenToRetry",
		},
		{
			Name: "refusal: a refusal of Connect has no reason",
			File: "grpcmw/connectmw/answer.go",
			Old:  "translated.AddDetail(d)",
			New:  "_ = d",
			Test: "grpcmw/connectmw TestTheTable",
		},
		{
			Name: "refusal: Connect's refusal hides core's error from interceptors",
			File: "grpcmw/status.go",
			Old:  "func (a *answer) Unwrap() error              { return a.cause }",
			New:  "",
			Test: "grpcmw/connectmw TestInterceptorsOutsideFindCoresErrorAndAHandlersOwn",
		},
	}
}

// mutantsOfFields have a lock made of what has no one spelling, or of nothing.
func mutantsOfFields() []Mutant {
	return []Mutant{
		{
			Name: "refusal: a time names a lock",
			File: "core/adapter/fields.go",
			Old:  "return t == reflect.TypeFor[time.Time]() ||",
			New:  "return t == reflect.TypeFor[time.Time]() && false ||",
			Test: "core/adapter TestFieldsThatNameNoLockAreRefusedAtTheStart",
		},
		{
			Name: "refusal: what embeds a time names a lock",
			File: "core/adapter/fields.go",
			Old:  "f.Anonymous && differs(f.Type)",
			New:  "f.Anonymous && false",
			Test: "core/adapter TestFieldsThatNameNoLockAreRefusedAtTheStart",
		},
		{
			Name: "refusal: the literal of a JSON number names a lock",
			File: "core/adapter/fields.go",
			Old:  "t == reflect.TypeFor[json.Number]():",
			New:  "t == reflect.TypeFor[json.Number]() && marshaler == nil:",
			Test: "core/adapter TestFieldsThatNameNoLockAreRefusedAtTheStart",
		},
		{
			Name: "refusal: a fraction names a lock",
			File: "core/adapter/fields.go",
			Old:  "reflect.Uint64:\n\t\treturn true",
			New:  "reflect.Uint64, reflect.Float64:\n\t\treturn true",
			Test: "core/adapter TestFieldsThatNameNoLockAreRefusedAtTheStart",
		},
		{
			Name: "refusal: a field that is not exported names a lock",
			File: "core/adapter/fields.go",
			Old:  "!ok || !field.IsExported()",
			New:  "!ok",
			Test: "core/adapter TestFieldsThatNameNoLockAreRefusedAtTheStart",
		},
		{
			Name: "refusal: an error of a field has its value",
			File: "core/adapter/fields.go",
			Old:  "fmt.Errorf(\"%w: it has no text\", core.ErrInvalid)",
			New:  "fmt.Errorf(\"%w: it has no text: %w\", core.ErrInvalid, err)",
			Test: "core/adapter TestFieldsThatNameNoLockAreRefusedAtTheStart",
		},
		{
			Name: "refusal: an empty field names a lock",
			File: "core/adapter/fields.go",
			Old:  "if v.IsZero() && !given {",
			New:  "if v.IsZero() && !given && v.Kind() == reflect.Chan {",
			Test: "core/adapter TestFieldsNameTheLockOfAStruct",
		},
		{
			Name: "refusal: a lock's loss hides the work's own error",
			File: "core/adapter/outcome.go",
			Old:  "return errors.Join(o.Own, o.Err)",
			New:  "return o.Err",
			Test: "core/adapter TestALossIsJoinedToTheWorksOwnError",
		},
		{
			Name: "refusal: what the work returns counts as the lock's refusal",
			File: "core/adapter/rule.go",
			Old:  "return errFailed\n",
			New:  "return out.Own\n",
			Test: "core/adapter TestWhatALockInsideSaysIsTheWorksOwn",
		},
		{
			Name: "refusal: a source of a comment is no parameter",
			File: "core/lockgen/parse.go",
			Old:  "!named[param] {",
			New:  "!named[param] && param == \"\" {",
			Test: "core/lockgen TestWhatCannotWorkIsRefusedWhereItStands",
		},
		{
			Name: "refusal: a method with a lock has no context",
			File: "core/lockgen/parse.go",
			Old:  "|| !isContext(params[0].Type)",
			New:  "",
			Test: "core/lockgen TestWhatCannotWorkIsRefusedWhereItStands",
		},
		{
			Name: "refusal: a method with a lock returns no error",
			File: "core/lockgen/parse.go",
			Old:  "results == nil || !isError(",
			New:  "results == nil && !isError(",
			Test: "core/lockgen TestWhatCannotWorkIsRefusedWhereItStands",
		},
		{
			Name: "refusal: generated code follows a nil pointer",
			File: "core/lockgen/write.go",
			Old:  "lockReached := false\\n",
			New:  "lockReached := true\\n",
			Test: "core/lockgen TestWhatIsWrittenIsAsItWasWritten",
		},
	}
}

// mutantsOfTheCommand believe anybody.
func mutantsOfTheCommand() []Mutant {
	return []Mutant{
		{
			Name: "refusal: anybody's header says who has released a lock",
			File: "core/cmd/holdfast/ui.go",
			Old:  "proxy && by != \"\"",
			New:  "by != \"\"",
			Test: "core/cmd/holdfast TestOnlyAProxyThatIsTrustedSaysWhoAsks",
		},
		{
			Name: "refusal: the page is reached past its proxy",
			File: "core/cmd/holdfast/ui.go",
			Old:  "ours = strings.EqualFold(host, name)",
			New:  "ours = ours || strings.EqualFold(host, name)",
			Test: "core/cmd/holdfast TestOnlyTheNameOfThePageReachesIt",
		},
	}
}

// mutantsOfAnswers give an answer that is not the one of the request, or let a request of a framework pass.
func mutantsOfAnswers() []Mutant {
	return []Mutant{
		{
			Name: "refusal: an Idempotency-Key is for any request",
			File: "httpmw/idempotency/idempotency.go",
			Old:  "case a.Fingerprint != q.fingerprint:",
			New:  "case a.Fingerprint == \"\":",
			Test: "httpmw/idempotency TestTheSameKeyForSomethingElseIs422",
		},
		{
			Name: "refusal: two first requests run under a shared lock",
			File: "httpmw/idempotency/idempotency.go",
			Old:  "[]core.Option{core.WithLimit(1)})",
			New:  "nil)",
			Test: "httpmw/idempotency TestTheLockIsExclusiveWhateverTheOptionsSay",
		},
		{
			Name: "refusal: an answer under a lost lock is kept",
			File: "httpmw/idempotency/idempotency.go",
			Old:  "ok && lease.Err() == nil {",
			New:  "ok && lease != nil {",
			Test: "httpmw/idempotency TestALostLockKeepsNothing",
		},
		{
			Name: "refusal: an answer that is a failure is kept",
			File: "httpmw/idempotency/idempotency.go",
			Old:  "status < http.StatusInternalServerError\n",
			New:  "status <= 599\n",
			Test: "httpmw/idempotency TestWhatFailedRunsAgain",
		},
		{
			Name: "refusal: an answer that broke off is kept",
			File: "httpmw/idempotency/idempotency.go",
			Old:  "case r.Method != http.MethodHead && c.torn():",
			New:  "case r.Method == \"\" && c.torn():",
			Test: "httpmw/idempotency TestWhatFailedRunsAgain",
		},
		{
			Name: "refusal: a body that was read outside is an empty one",
			File: "httpmw/idempotency/asked.go",
			Old:  "if said && len(body) == 0 {",
			New:  "if said && len(body) == 0 && false {",
			Test: "httpmw/idempotency TestARequestWhoseBodyWasReadOutsideIsRefused",
		},
		{
			Name: "refusal: idempotency goes with dedup",
			File: "httpmw/idempotency/idempotency.go",
			Old:  "window > 0",
			New:  "window < 0",
			Test: "httpmw/idempotency TestIdempotencyThatCannotWorkIsRefused",
		},
		{
			Name: "refusal: half of an answer is given again",
			File: "httpmw/idempotency/idempotency.go",
			Old:  "case !a.Whole:",
			New:  "case false:",
			Test: "httpmw/idempotency TestAnswersThatAreTooLargeOrFlushedAreDoneAll",
		},
		{
			Name: "refusal: a key of no or many values is one",
			File: "httpmw/idempotency/asked.go",
			Old:  "if len(values) > 1 || sent == \"\"",
			New:  "if sent == \"\"",
			Test: "httpmw/idempotency TestBadKeysAreRefusedAndNothingOfABodyIsLost",
		},
		{
			Name: "refusal: a client of Fiber is told what an inner lock's error says",
			File: "httpmw/internal/settings/settings.go",
			Old:  "if p := httpmw.ProblemFor(err); p != nil {",
			New:  "if p := httpmw.ProblemFor(err); p != nil && false {",
			Test: "httpmw/fibermw TestTheTable",
		},
		{
			Name: "refusal: a client of Echo v5 is told what an inner lock's error says",
			File: "httpmw/internal/settings/settings.go",
			Old:  "if p := httpmw.ProblemFor(err); p != nil {",
			New:  "if p := httpmw.ProblemFor(err); p != nil && false {",
			Test: "httpmw/echo5mw TestTheTable",
		},
		{
			Name: "refusal: a parameter that a route of echomw lacks is empty",
			File: "httpmw/echomw/serve.go",
			Old:  "return \"\", rule.ErrRoute",
			New:  "return \"\", nil",
			Test: "httpmw/echomw TestTheTable",
		},
		{
			Name: "refusal: a parameter that a route of echo5mw lacks is empty",
			File: "httpmw/echo5mw/serve.go",
			Old:  "return \"\", rule.ErrRoute",
			New:  "return \"\", nil",
			Test: "httpmw/echo5mw TestTheTable",
		},
		{
			Name: "refusal: a parameter that a route of ginmw lacks is empty",
			File: "httpmw/ginmw/serve.go",
			Old:  "return \"\", rule.ErrRoute",
			New:  "return \"\", nil",
			Test: "httpmw/ginmw TestTheTable",
		},
		{
			Name: "refusal: a parameter that a route of fibermw lacks is empty",
			File: "httpmw/fibermw/request.go",
			Old:  "return \"\", rule.ErrRoute",
			New:  "return \"\", nil",
			Test: "httpmw/fibermw TestTheTable",
		},
		{
			Name: "refusal: a malformed query of Fiber has values",
			File: "httpmw/fibermw/request.go",
			Old:  "err != nil {\n\t\treturn nil\n",
			New:  "err != nil && r.c == nil {\n\t\treturn nil\n",
			Test: "httpmw/fibermw TestTheTable",
		},
		{
			Name: "refusal: an escape that is left in a path value passes",
			File: "httpmw/serve.go",
			Old:  "return r.Unescaped(v)",
			New:  "return v, nil",
			Test: "httpmw TestPathValuesOfAnotherRouterCount",
		},
	}
}
