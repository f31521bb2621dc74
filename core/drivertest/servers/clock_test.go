package servers

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAServersClockStandsWhereItIsSet(t *testing.T) {
	t.Parallel()
	s, step := RedisWithClock(t)
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 90 * time.Minute, 0} {
		step(ahead)
		reply, err := ask(s.Addr(), "TIME")
		if err != nil {
			t.Fatal(err)
		}
		seconds, err := strconv.ParseInt(strings.Fields(strings.Trim(fmt.Sprint(reply), "[]"))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Until(time.Unix(seconds, 0)) - ahead; off.Abs() > time.Minute {
			t.Errorf("set to %v, it stands %v beside that", ahead, off)
		}
	}
}
