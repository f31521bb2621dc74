package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/look"
	"github.com/holdfast-go/holdfast/core/operate"
)

// list is the command ls.
func (p *program) list(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	form := formatFlag(flags)
	if err := p.arguments(flags, args, maxFilters); err != nil {
		return misused, err
	}
	s, err := at.open(ctx)
	if err != nil {
		return failed, err
	}
	defer s.close(ctx)
	if err := s.answers(ctx); err != nil {
		return failed, err
	}
	infos, err := collect(ctx, s.locks, flags.Args())
	if err != nil {
		return failed, err
	}
	if len(infos) == 0 {
		p.tellEmpty(ctx, s, "nothing is held", flags.Args())
	}
	return done, p.show(infos, *form)
}

const maxFilters = 100

// collect returns what is held, sorted by name, each name once.
func collect(ctx context.Context, locks *core.Locker, filter look.Filter) ([]inspect.LeaseInfo, error) {
	byName := make(map[string]inspect.LeaseInfo)
	for info, err := range operate.New(locks).Leases(ctx, filter.Prefix()) {
		if err != nil {
			return nil, err
		}
		if filter.Keep(info.Name) {
			byName[info.Name] = info
		}
	}
	var infos []inspect.LeaseInfo
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		infos = append(infos, byName[name])
	}
	return infos, nil
}

// tellEmpty says where nothing was found: most who see nothing have looked at the wrong place.
func (p *program) tellEmpty(ctx context.Context, s *service, what string, filters []string) {
	if len(filters) > 0 {
		what += " that matches " + clean(strings.Join(quoted(filters), " or "))
	}
	p.complain("%s, at %s under %q", what, clean(s.Place), s.Prefix)
	if s.Prefixes == nil {
		return
	}
	found, err := s.Prefixes(ctx)
	found = slices.DeleteFunc(found, func(prefix string) bool { return prefix == s.Prefix })
	if err != nil || len(found) == 0 {
		return
	}
	const most = 20
	more := ""
	if len(found) > most {
		more = fmt.Sprintf(", and %d more", len(found)-most)
	}
	p.complain("there are or were locks under %s%s; -prefix chooses", clean(strings.Join(quoted(found[:min(len(found), most)]), ", ")), more)
}

func quoted(texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, strconv.Quote(text))
	}
	return all
}

// show writes what is held in the format that was asked for.
func (p *program) show(infos []inspect.LeaseInfo, form format) error {
	switch {
	case form == asObj:
		return writeJSON(p.out, infos, newRow)
	case p.terminal:
		return writeTable(p.out, infos, form == wide)
	default:
		return writeTabs(p.out, infos, form == wide)
	}
}

// writeTabs is for scripts: the columns of the table, whole.
func writeTabs(w io.Writer, infos []inspect.LeaseInfo, all bool) error {
	var b strings.Builder
	for _, info := range infos {
		for _, row := range rows(info, len(info.Line), all) {
			b.WriteString(strings.Join(row, "\t") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// inspect is the command of that name: it finds a name that nobody holds, too.
func (p *program) inspect(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	form := formatFlag(flags)
	if err := p.arguments(flags, args, 1); err != nil {
		return misused, err
	}
	name := flags.Arg(0)
	if name == "" {
		return misused, p.misuse("inspect needs a name; ls shows those that are held")
	}
	s, err := at.open(ctx)
	if err != nil {
		return failed, err
	}
	defer s.close(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := operate.New(s.locks).Inspect(ctx, name)
	if err != nil {
		return failed, err
	}
	if *form == asObj {
		return done, writeJSON(p.out, []inspect.LeaseInfo{info}, newRow)
	}
	return done, writeStory(p.out, info)
}

// row is what -o json says of a name. Times are in milliseconds; what is not known is missing.
type row struct {
	Name    string    `json:"name"`
	Held    bool      `json:"held"`
	Kind    string    `json:"kind,omitempty"`
	Limit   int       `json:"limit,omitempty"`
	Label   string    `json:"label,omitempty"`
	HeldFor int64     `json:"held_for_ms,omitempty"`
	Fence   uint64    `json:"fence,omitempty"`
	Handle  string    `json:"handle,omitempty"`
	TTL     int64     `json:"ttl_ms,omitempty"`
	Holders []one     `json:"holders,omitempty"`
	Line    []waiting `json:"line"`
	Nodes   []voter   `json:"nodes,omitempty"`
}

// voter is what a node of a quorum says, where nodes disagree.
type voter struct {
	Silent bool   `json:"silent,omitempty"`
	Held   bool   `json:"held"`
	Label  string `json:"label,omitempty"`
	Handle string `json:"handle,omitempty"`
	TTL    int64  `json:"ttl_ms,omitempty"`
}

// one is one of several holders.
type one struct {
	Label   string `json:"label,omitempty"`
	HeldFor int64  `json:"held_for_ms,omitempty"`
	Handle  string `json:"handle"`
	TTL     int64  `json:"ttl_ms"`
	Limit   int    `json:"limit,omitempty"`
}

type waiting struct {
	Label  string `json:"label,omitempty"`
	Waited int64  `json:"waited_ms,omitempty"`
	Alive  bool   `json:"alive"`
}

func newRow(info inspect.LeaseInfo) row {
	r := row{
		Name: info.Name, Held: info.Held, Kind: string(info.Kind), Limit: info.Limit, Label: info.Label, HeldFor: info.HeldFor.Milliseconds(),
		Fence: info.Fence, Handle: info.Handle, TTL: info.Remaining.Milliseconds(), Line: []waiting{},
	}
	for _, h := range info.Holders {
		r.Holders = append(r.Holders, one{h.Label, h.HeldFor.Milliseconds(), h.Handle, h.Remaining.Milliseconds(), h.Limit})
	}
	for _, in := range info.Line {
		r.Line = append(r.Line, waiting{in.Label, in.Waited.Milliseconds(), in.Alive})
	}
	for _, n := range info.Nodes {
		r.Nodes = append(r.Nodes, voter{n.Silent, n.Held, n.Label, n.Handle, n.Remaining.Milliseconds()})
	}
	return r
}

// writeJSON writes an object a line.
func writeJSON[T, R any](w io.Writer, infos []T, row func(T) R) error {
	out := json.NewEncoder(w)
	for _, info := range infos {
		if err := out.Encode(row(info)); err != nil {
			return errors.Join(errors.New("write JSON"), err)
		}
	}
	return nil
}
