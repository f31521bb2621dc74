package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/key"
)

const directive = "//holdfast:lock"

// source is a Go file.
type source struct {
	fset      *token.FileSet
	file      *ast.File
	name      string // of the file, without its folder
	imports   map[string]*ast.ImportSpec
	decorated []*decorated
}

// decorated is an interface with locks.
type decorated struct {
	spec    *ast.TypeSpec
	methods []*method
}

// method is one with a lock.
type method struct {
	name      string
	signature *ast.FuncType
	line      int // of its comment
	templates string
	keys      []*key.Key
	options   []string // as code
}

func parse(file string) (*source, error) {
	s := &source{fset: token.NewFileSet(), name: path.Base(file), imports: make(map[string]*ast.ImportSpec)}
	var err error
	if s.file, err = parser.ParseFile(s.fset, file, nil, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return nil, err
	}
	for _, i := range s.file.Imports {
		s.imports[packageName(i)] = i
	}
	for _, d := range s.file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok {
				if err := s.decorate(t); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := s.stray(); err != nil {
		return nil, err
	}
	return s, nil
}

// meant is a comment that somebody took for a directive. To Go, one with a space in front is none.
var meant = regexp.MustCompile(`^//\s*holdfast:`)

// stray says of which comment no lock is made: the method that it was meant for would run without.
func (s *source) stray() error {
	read := make(map[int]bool)
	for _, d := range s.decorated {
		for _, m := range d.methods {
			read[m.line] = true
		}
	}
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if at := s.fset.Position(c.Pos()); meant.MatchString(c.Text) && !read[at.Line] {
				return fmt.Errorf("%s: the comment stands at no method, or is misspelled: it begins with %s, in the line before a method of an interface", at, directive)
			}
		}
	}
	return nil
}

var version = regexp.MustCompile(`^v\d+$`)

// packageName is what a file calls what it imports: the name that it gives it, or the path's last word.
func packageName(i *ast.ImportSpec) string {
	if i.Name != nil {
		return i.Name.Name
	}
	p, _ := strconv.Unquote(i.Path.Value) // the parser has read it
	if version.MatchString(path.Base(p)) {
		p = path.Dir(p)
	}
	return path.Base(p)
}

func (s *source) decorate(spec *ast.TypeSpec) error {
	t, ok := spec.Type.(*ast.InterfaceType)
	if !ok {
		return nil
	}
	d := &decorated{spec: spec}
	var embedded ast.Expr
	for _, f := range t.Methods.List {
		signature, ok := f.Type.(*ast.FuncType)
		if !ok && embedded == nil && !isForeign(f.Type) {
			embedded = f.Type
		}
		if !ok || f.Doc == nil {
			continue
		}
		for _, c := range f.Doc.List {
			text, ok := strings.CutPrefix(c.Text, directive)
			if !ok {
				continue
			}
			m := &method{name: f.Names[0].Name, signature: signature, line: s.fset.Position(c.Pos()).Line}
			if err := m.read(spec.Name.Name, text); err != nil {
				return fmt.Errorf("%s: %s.%s: %w", s.fset.Position(c.Pos()), spec.Name.Name, m.name, err)
			}
			d.methods = append(d.methods, m)
		}
	}
	switch {
	case len(d.methods) == 0:
	case embedded != nil: // it may have locks itself, which its methods would not have here
		return fmt.Errorf("%s: %s embeds an interface of this package: write its methods out, with their comments", s.fset.Position(embedded.Pos()), spec.Name.Name)
	default:
		s.decorated = append(s.decorated, d)
	}
	return nil
}

// isForeign says of an embedded interface that it is another package's. It passes through.
func isForeign(t ast.Expr) bool {
	_, ok := t.(*ast.SelectorExpr)
	return ok
}

var option = regexp.MustCompile(`^([a-z]+)=(.*)$`)

// read reads a comment: templates, then options.
func (m *method) read(of, text string) (err error) {
	words := strings.Fields(text)
	var templates []string
	for len(words) > 0 && !option.MatchString(words[0]) && words[0] != "shared" {
		templates, words = append(templates, words[0]), words[1:]
	}
	m.templates = strings.Join(templates, " ")
	if m.keys, err = key.ParseAll(m.templates); err != nil {
		return err
	}
	for _, word := range words {
		code, err := optionCode(word, of+"."+m.name)
		if err != nil {
			return err
		}
		m.options = append(m.options, code...)
	}
	return m.check()
}

// optionCode is an option as code.
func optionCode(word, operation string) ([]string, error) {
	if word == "shared" {
		return []string{"core.WithShared()"}, nil
	}
	found := option.FindStringSubmatch(word)
	if found == nil {
		return nil, fmt.Errorf("%q: templates come first, and an option has the form name=value", word)
	}
	name, value := found[1], found[2]
	if name == "limit" {
		n, err := strconv.Atoi(value)
		if err != nil {
			return nil, fmt.Errorf("%q: the limit is a number", word)
		}
		return []string{fmt.Sprintf("core.WithLimit(%d)", n)}, nil
	}
	function := map[string]string{
		"wait": "WithWait", "ttl": "WithTTL", "maxhold": "WithMaxHold", "minhold": "WithMinHold", "dedup": "WithDedup",
	}[name]
	if function == "" {
		return nil, fmt.Errorf("%q: there are wait, ttl, maxhold, minhold, dedup, limit and shared", word)
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return nil, fmt.Errorf("%q: the value is a duration, such as 2s", word)
	}
	code := []string{fmt.Sprintf("core.%s(%s)", function, durationCode(d))}
	if name == "dedup" {
		code = append(code, fmt.Sprintf("core.WithDedupScope(%q)", operation))
	}
	return code, nil
}

// durationCode is a duration as somebody would write it.
func durationCode(d time.Duration) string {
	for _, unit := range []struct {
		is   time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}} {
		if d%unit.is == 0 {
			return fmt.Sprintf("%d * time.%s", d/unit.is, unit.name)
		}
	}
	return fmt.Sprintf("time.Duration(%d)", d)
}

// check says what is wrong with a method that is to have a lock.
func (m *method) check() error {
	params, results := m.signature.Params.List, m.signature.Results
	if len(params) == 0 || !isContext(params[0].Type) {
		return fmt.Errorf("a method with a lock has a context.Context as its first parameter")
	}
	if results == nil || !isError(results.List[len(results.List)-1].Type) {
		return fmt.Errorf("a method with a lock has an error as its last result")
	}
	if len(params[0].Names) > 1 {
		return fmt.Errorf("a method with a lock has one context")
	}
	named := make(map[string]bool)
	for i, p := range params {
		for _, n := range p.Names {
			if slices.Contains([]string{"adapter", "context", "error", "false", "lockNames", "lockSelf", "lockSource", "make", "nil", "string", "true"}, n.Name) {
				return fmt.Errorf("the parameter %s hides what the generated code needs of that name: rename it", n.Name)
			}
			named[n.Name] = i > 0 && n.Name != "_"
		}
	}
	for _, k := range m.keys {
		for _, s := range k.Sources() {
			if param, _, _ := strings.Cut(s.Name, "."); !named[param] {
				return fmt.Errorf("{%s}: there is no parameter %q", s, param)
			}
		}
	}
	return nil
}

func isContext(t ast.Expr) bool {
	x, ok := t.(*ast.SelectorExpr)
	return ok && x.Sel.Name == "Context"
}

func isError(t ast.Expr) bool {
	x, ok := t.(*ast.Ident)
	return ok && x.Name == "error"
}
