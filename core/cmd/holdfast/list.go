package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

// list is the command ls.
func (p *program) list(ctx context.Context, at place, flags *flag.FlagSet, args []string) (int, error) {
	asJSON := flags.Bool("json", false, "one JSON object a line")
	if err := p.arguments(flags, args, 1); err != nil {
		return misused, err
	}
	locks, closeAll, err := at.open()
	if err != nil {
		return failed, err
	}
	defer closeAll()
	infos, err := collect(ctx, locks, flags.Arg(0))
	if err != nil {
		return failed, err
	}
	switch {
	case *asJSON:
		return done, writeJSON(p.out, infos)
	case p.terminal:
		return done, writeTable(p.out, infos)
	default:
		return done, writeTabs(p.out, infos)
	}
}

// collect returns what is held, sorted by name, each name once.
func collect(ctx context.Context, locks *core.Locker, prefix string) ([]core.LeaseInfo, error) {
	byName := make(map[string]core.LeaseInfo)
	for info, err := range locks.Leases(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		byName[info.Name] = info
	}
	var infos []core.LeaseInfo
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		infos = append(infos, byName[name])
	}
	return infos, nil
}

// writeTabs is for scripts: the columns of the table, whole.
func writeTabs(w io.Writer, infos []core.LeaseInfo) error {
	var b strings.Builder
	for _, info := range infos {
		for _, row := range rows(info, len(info.Line)) {
			b.WriteString(strings.Join(row, "\t") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// row is what -json says of a name. Times are in milliseconds.
type row struct {
	Name    string    `json:"name"`
	Label   string    `json:"label,omitempty"`
	Fence   uint64    `json:"fence,omitempty"`
	Handle  string    `json:"handle,omitempty"`
	TTL     int64     `json:"ttl_ms,omitempty"`
	Foreign bool      `json:"foreign,omitempty"`
	Kept    bool      `json:"kept,omitempty"`
	Holders []one     `json:"holders,omitempty"`
	Line    []waiting `json:"line"`
}

// one is one of several holders.
type one struct {
	Handle string `json:"handle"`
	TTL    int64  `json:"ttl_ms"`
	Limit  int    `json:"limit,omitempty"`
}

type waiting struct {
	Waited int64 `json:"waited_ms"`
	Alive  bool  `json:"alive"`
}

func writeJSON(w io.Writer, infos []core.LeaseInfo) error {
	out := json.NewEncoder(w)
	for _, info := range infos {
		r := row{
			Name: info.Name, Label: info.Label, Fence: info.Fence, Handle: info.Handle, TTL: info.Remaining.Milliseconds(),
			Foreign: info.Foreign, Kept: info.Kept, Line: []waiting{},
		}
		for _, h := range info.Holders {
			r.Holders = append(r.Holders, one{h.Handle, h.Remaining.Milliseconds(), h.Limit})
		}
		for _, in := range info.Line {
			r.Line = append(r.Line, waiting{in.Waited.Milliseconds(), in.Alive})
		}
		if err := out.Encode(r); err != nil {
			return fmt.Errorf("holdfast: %w", err)
		}
	}
	return nil
}
