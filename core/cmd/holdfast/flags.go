package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"time"
)

// duration is a flag that takes what Go takes, such as 1m30s, and what flock(1) takes: seconds.
type duration struct {
	value *time.Duration
	set   *bool // it was given; may be nil
}

func (d duration) String() string {
	if d.value == nil || *d.value == 0 { // no default to speak of
		return ""
	}
	return d.value.String()
}

// Set implements flag.Value.
func (d duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		seconds, e := strconv.ParseFloat(text, 64)
		if e != nil || math.IsNaN(seconds) || seconds > 1e9 {
			return errors.New("neither like 1m30s nor a number of seconds")
		}
		v = time.Duration(seconds * float64(time.Second))
	}
	if v < 0 {
		return errors.New("negative")
	}
	*d.value = v
	if d.set != nil {
		*d.set = true
	}
	return nil
}

func durationFlag(flags *flag.FlagSet, value *time.Duration, name, usage string) {
	flags.Var(duration{value: value}, name, usage)
}

// format is what -o says.
type format string

const (
	table format = "table" // aligned for people; with tabs and whole, if the output is no terminal
	wide  format = "wide"  // with handles, and fences where they are known
	asObj format = "json"  // one object a line
)

func (f *format) String() string { return string(*f) }

// Set implements flag.Value.
func (f *format) Set(text string) error {
	switch format(text) {
	case table, wide, asObj:
		*f = format(text)
		return nil
	default:
		return fmt.Errorf("not one of %s, %s, %s", table, wide, asObj)
	}
}

func formatFlag(flags *flag.FlagSet) *format {
	f := table
	flags.Var(&f, "o", "`format`: table, wide with handles and fences, or json with one object a line")
	return &f
}
