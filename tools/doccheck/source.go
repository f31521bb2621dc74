package main

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is what the go command says of a package.
type source struct {
	Dir, ImportPath, Name              string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

func list(ctx context.Context, dir string, patterns ...string) ([]source, error) {
	args := append([]string{"list", "-find", "-json=Dir,ImportPath,Name,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: packages that documents name
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.New(said.String())
	}
	var all []source
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var s source
		if err := decoder.Decode(&s); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
}

// parsed is a package's documentation, with its examples.
func (s source) parsed() (*doc.Package, *token.FileSet, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range append(append(append([]string(nil), s.GoFiles...), s.TestGoFiles...), s.XTestGoFiles...) {
		f, err := parser.ParseFile(fset, filepath.Join(s.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, s.ImportPath)
	return p, fset, err
}

// index knows the symbols of packages.
type index struct {
	ctx   context.Context //nolint:containedctx // of one run of a program
	dir   string
	known map[string]map[string]bool
}

// has says whether a package has a symbol: Name, or Type.Method. Fields count as methods.
func (x *index) has(path, symbol string) bool {
	if x.known[path] == nil {
		x.known[path] = make(map[string]bool)
		if listed, err := list(x.ctx, x.dir, path); err == nil && len(listed) == 1 {
			listed[0].TestGoFiles, listed[0].XTestGoFiles = nil, nil
			if p, _, err := listed[0].parsed(); err == nil {
				x.known[path] = symbols(p)
			}
		}
	}
	return x.known[path][symbol]
}

func symbols(p *doc.Package) map[string]bool {
	all := map[string]bool{"": true}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, name := range v.Names {
				all[name] = true
			}
		}
	}
	functions := func(prefix string, list []*doc.Func) {
		for _, f := range list {
			all[prefix+f.Name] = true
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions("", p.Funcs)
	for _, t := range p.Types {
		all[t.Name] = true
		values(t.Consts)
		values(t.Vars)
		functions("", t.Funcs)
		functions(t.Name+".", t.Methods)
		for _, member := range members(t) {
			all[t.Name+"."+member] = true
		}
	}
	return all
}

// members returns the exported fields of a type, or methods of an interface. Their type's comment may speak for them.
func members(t *doc.Type) []string {
	var all []string
	for _, spec := range t.Decl.Specs {
		var list *ast.FieldList
		switch of := spec.(*ast.TypeSpec).Type.(type) {
		case *ast.StructType:
			list = of.Fields
		case *ast.InterfaceType:
			list = of.Methods
		default:
			continue
		}
		for _, f := range list.List {
			for _, name := range f.Names {
				all = append(all, name.Name)
			}
		}
	}
	return all
}
