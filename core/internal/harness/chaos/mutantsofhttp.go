//go:build linux

package chaos

const (
	tableOfHTTP  = "httpmw TestTheTable"
	namesOfHTTP  = "core/internal/harness/httpnames TestTheLockIsOfWhatTheHandlerReads"
	fingerprints = "httpmw/idempotency TestTheFingerprintIsOfWhatTheClientSent"
)

// mutantsOfHTTP let the middleware guess where it has to refuse.
func mutantsOfHTTP() []Mutant {
	return []Mutant{
		{
			Name: "http: text needs no form",
			File: "core/adapter/key.go",
			Old:  "if err == nil && s.text {",
			New:  "if err != nil && s.text {",
			Test: tableOfHTTP,
		},
		{
			Name: "http: of values that differ the first one counts",
			File: "core/adapter/key.go",
			Old:  "if v != values[0] {",
			New:  "if v != values[0] && false {",
			Test: tableOfHTTP,
		},
		{
			Name: "http: a key function may make any name",
			File: "core/adapter/key.go",
			Old:  "err = key.CheckName(n)",
			New:  "err = nil",
			Test: tableOfHTTP,
		},
		{
			Name: "http: every body is JSON",
			File: "httpmw/internal/rule/source.go",
			Old:  "if !IsJSON(r.Header(\"Content-Type\")) {",
			New:  "if false {",
			Test: tableOfHTTP,
		},
		{
			Name: "http: a Content-Type may be written in capitals",
			File: "httpmw/internal/rule/source.go",
			Old:  "strings.CutPrefix(types[0],",
			New:  "strings.CutPrefix(strings.ToLower(types[0]),",
			Test: tableOfHTTP,
		},
		{
			Name: "http: the first of several Content-Types counts",
			File: "httpmw/internal/rule/source.go",
			Old:  "if len(types) != 1 {",
			New:  "if len(types) == 0 {",
			Test: tableOfHTTP,
		},
		{
			Name: "http: an escape that is left in a parameter of Echo passes",
			File: "httpmw/internal/rule/source.go",
			Old:  "err == nil && u != v {",
			New:  "err != nil && u != v {",
			Test: namesOfHTTP,
		},
		{
			Name: "http: a parameter that the route lacks is empty",
			File: "httpmw/serve.go",
			Old:  "return \"\", rule.ErrRoute",
			New:  "return \"\", nil",
			Test: tableOfHTTP,
		},
		{
			Name: "http: a body of any length is read",
			File: "httpmw/internal/rule/http.go",
			Old:  "if r.ContentLength > maxBody {",
			New:  "if r.ContentLength < -1 {",
			Test: tableOfHTTP,
		},
		{
			Name: "http: dedup needs no scope",
			File: "httpmw/internal/rule/rule.go",
			Old:  "window > 0 && scope == \"\" {",
			New:  "window < 0 && scope == \"\" {",
			Test: tableOfHTTP,
		},
		{
			Name: "http: a lost lock's answer has the handler's headers",
			File: "httpmw/internal/rule/rule.go",
			Old:  "seen.Restore()",
			New:  "_ = seen",
			Test: tableOfHTTP,
		},
		{
			Name: "http: a client is told what an inner lock's error says",
			File: "httpmw/internal/settings/settings.go",
			Old:  "if p := httpmw.ProblemFor(err); p != nil {",
			New:  "if p := httpmw.ProblemFor(err); p != nil && false {",
			Test: "httpmw/echomw TestTheTable",
		},
		{
			Name: "http: Echo's bound handler gets another request than the lock",
			File: "httpmw/internal/settings/settings.go",
			Old:  "return handler(c, req) })",
			New:  "_ = decode(c, req); req = new(T); return handler(c, req) })",
			Test: "httpmw/echomw TestTheTable",
		},
		{
			Name: "http: gin binds once more, behind the lock",
			File: "httpmw/ginmw/bind.go",
			Old:  "\t\t\thandler(c, req)\n",
			New:  "\t\t\treq = new(T)\n\t\t\t_ = bind(c, req)\n\t\t\thandler(c, req)\n",
			Test: "httpmw/ginmw TestTheTable",
		},
		{
			Name: "http: gin's failure under another writer is done",
			File: "httpmw/ginmw/serve.go",
			Old:  "\tinside.settle(c.Writer.Status(), len(c.Errors) > before)\n",
			New:  "\tif c.Writer == inside {\n\t\tinside.settle(c.Writer.Status(), len(c.Errors) > before)\n\t}\n",
			Test: "httpmw/ginmw TestOnlyWhatSucceededIsDone",
		},
		{
			Name: "http: Fiber's bound handler gets another request than the lock",
			File: "httpmw/internal/settings/settings.go",
			Old:  "return handler(c, req) })",
			New:  "return handler(c, new(T)) })",
			Test: "httpmw/fibermw TestTheTable",
		},
		{
			Name: "http: an Idempotency-Key is for the path that is left",
			File: "httpmw/idempotency/asked.go",
			Old:  "cmp.Or(r.RequestURI, r.URL.RequestURI())",
			New:  "cmp.Or(r.URL.RequestURI(), r.RequestURI)",
			Test: fingerprints,
		},
		{
			Name: "http: an Idempotency-Key is for any host",
			File: "httpmw/idempotency/asked.go",
			Old:  "{r.Method, r.Host,",
			New:  "{r.Method,",
			Test: fingerprints,
		},
		{
			Name: "http: an Idempotency-Key is for any overridden method",
			File: "httpmw/idempotency/asked.go",
			Old:  "range overrides {",
			New:  "range overrides[:0] {",
			Test: fingerprints,
		},
		{
			Name: "http: strangers share their Idempotency-Keys",
			File: "httpmw/idempotency/idempotency.go",
			Old:  "if err == nil && scope == \"\" {",
			New:  "if err != nil && scope == \"\" {",
			Test: "httpmw/idempotency TestAnEmptyScopeIsRefused",
		},
		{
			Name: "http: a silent store holds the request",
			File: "httpmw/idempotency/idempotency.go",
			Old:  "context.WithTimeout(ctx, storeTimeout)",
			New:  "context.WithTimeout(ctx, 1000*storeTimeout)",
			Test: "httpmw/idempotency TestAStoreThatDoesNotAnswerIsWaitedForNoLongerThanItsBound",
		},
	}
}
