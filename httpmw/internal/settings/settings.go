// Package settings makes the settings of a framework's middleware ready.
package settings

import (
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Rule checks settings. Fields are those of Bind, or nil, and c is what the framework's handlers get of a request.
func Rule[R rule.Request, C, E any](s httpmw.Settings[C, E], fields adapter.Sources[R], c func(R) C) (*rule.Rule[R], error) {
	ready := rule.Settings[R]{Locker: s.Locker, Key: s.Key, Fields: fields, Options: s.Options, MaxBody: s.MaxBody, Logger: s.Logger}
	if s.KeyFunc != nil {
		ready.KeyFunc = func(r R) (string, error) { return s.KeyFunc(c(r)) }
	}
	return rule.New(ready)
}
