package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/look"
	"github.com/holdfast-go/holdfast/core/operate"
)

// markers is the command of that name: it lists dedup markers, or removes one.
func (p *program) markers(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	form := formatFlag(flags)
	remove := flags.Bool("remove", false, "remove the marker of the NAME, so that its work can be done again")
	var scope *string
	flags.Func("scope", "with -remove: the `scope` of the marker, if the name has several", func(text string) error {
		scope = &text
		return nil
	})
	if err := p.arguments(flags, args, maxFilters); err != nil {
		return misused, err
	}
	if *remove && (flags.NArg() != 1 || flags.Arg(0) == "") {
		return misused, p.misuse("markers -remove needs one name; markers shows those that there are")
	}
	if scope != nil && !*remove {
		return misused, p.misuse("markers: -scope goes with -remove")
	}
	s, err := at.open(ctx)
	if err != nil {
		return failed, err
	}
	defer s.close(ctx)
	if *remove {
		return p.unmark(ctx, s, flags.Arg(0), scope)
	}
	if err := s.answers(ctx); err != nil {
		return failed, err
	}
	infos, err := collectMarkers(ctx, s.locks, flags.Args())
	if err != nil {
		return failed, err
	}
	if len(infos) == 0 {
		p.tellEmpty(ctx, s, "there is no marker", flags.Args())
	}
	return done, p.showMarkers(infos, *form)
}

// collectMarkers returns the markers, sorted, each once.
func collectMarkers(ctx context.Context, locks *core.Locker, filter look.Filter) (infos []inspect.MarkerInfo, err error) {
	for info, err := range operate.New(locks).Markers(ctx, filter.Prefix()) {
		if err != nil {
			return nil, err
		}
		if filter.Keep(info.Name) {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b inspect.MarkerInfo) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Scope, b.Scope))
	})
	same := func(a, b inspect.MarkerInfo) bool { return a.Name == b.Name && a.Scope == b.Scope }
	return slices.CompactFunc(infos, same), nil // a walk may meet one twice
}

var (
	markerHeader = []string{"NAME", "SCOPE", "DONE BY", "TTL"}
	markerWidths = []int{36, 24, 30, 4}
)

func (p *program) showMarkers(infos []inspect.MarkerInfo, form format) error {
	if form == asObj {
		return writeJSON(p.out, infos, newMarkerRow)
	}
	var lines [][]string
	for _, info := range infos {
		lines = append(lines, []string{clean(info.Name), cmp.Or(clean(info.Scope), "-"), cmp.Or(clean(info.Label), "-"), human(info.Remaining)})
	}
	text := ""
	switch {
	case len(lines) == 0:
	case p.terminal:
		text = align(append([][]string{markerHeader}, lines...), markerWidths)
	default:
		for _, line := range lines {
			text += strings.Join(line, "\t") + "\n"
		}
	}
	_, err := io.WriteString(p.out, text)
	return err
}

// markerRow is what -o json says of a marker.
type markerRow struct {
	Name  string `json:"name"`
	Scope string `json:"scope"`
	Label string `json:"label,omitempty"`
	TTL   int64  `json:"ttl_ms"`
}

func newMarkerRow(info inspect.MarkerInfo) markerRow {
	return markerRow{info.Name, info.Scope, info.Label, info.Remaining.Milliseconds()}
}

// unmark removes the marker of a name: that of the scope, or else the only one.
func (p *program) unmark(ctx context.Context, s *service, name string, scope *string) (int, error) {
	if scope == nil {
		infos, err := collectMarkers(ctx, s.locks, look.Filter{name})
		if err != nil {
			return failed, err
		}
		var scopes []string
		for _, info := range infos {
			if info.Name == name {
				scopes = append(scopes, info.Scope)
			}
		}
		switch len(scopes) {
		case 0:
			p.complain("%q has no marker; nothing was done", name)
			return failed, nil
		case 1:
			scope = &scopes[0]
		default:
			p.complain("%q has markers of several scopes; -scope says which: %s; nothing was done", name, clean(strings.Join(quoted(scopes), ", ")))
			return failed, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	removed, err := operate.New(s.locks).RemoveMarker(ctx, name, *scope)
	p.auditMarker(s, name, *scope, removed, err)
	switch {
	case err != nil:
		return failed, err
	case !removed:
		p.complain("%q has no marker of scope %q; nothing was done", name, *scope)
		return failed, nil
	}
	_, err = fmt.Fprintf(p.out, "removed the marker of %s\n", clean(name))
	return done, err
}
