package telemetrytest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

const page = "../../../../docs/operate/observing.md"

// What follows is the code of the page; examples/readme_test.go compares them.

var _ = snippet

func snippet(rdb redis.UniversalClient) error {
	tel, err := telemetry.New( // once the program has set up OpenTelemetry
		telemetry.WithTemplates("order:{id|int}", "report:{day}"), // counters begin at 0
		telemetry.WithSpans())
	if err != nil {
		return err
	}
	locks, err := core.New(redislock.New(rdb), tel.Option())
	_ = locks
	return err
}

func TestThePageHasEveryLineOfTheLog(t *testing.T) {
	t.Parallel()
	text := read(t, page)
	found := 0
	for _, file := range []string{
		"core/log.go", "core/inspector/change.go", "core/natslock/bucket.go", "core/sqllock/listen.go", "grpcmw/rule.go",
		"httpmw/idempotency/idempotency.go", "httpmw/internal/rule/rule.go", "taskmw/outcome.go", "taskmw/rivermw/outcome.go",
	} {
		for _, line := range regexp.MustCompile(`"holdfast: ([^"]+)"`).FindAllStringSubmatch(read(t, "../../../../"+file), -1) {
			found++
			if !strings.Contains(text, "`"+line[1]) {
				t.Errorf("the page does not explain %q", line[1])
			}
		}
	}
	if found != 19 {
		t.Errorf("%d lines in the code", found)
	}
	for _, reason := range []core.Reason{core.ReasonExpired, core.ReasonTaken, core.ReasonUnreachable, core.ReasonMaxHold} {
		if !strings.Contains(text, "\n- `"+string(reason)+"`: ") {
			t.Errorf("the page does not explain %q", reason)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	backendtest.OK(t, err)
	return string(text)
}
