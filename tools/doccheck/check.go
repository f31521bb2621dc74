package main

import (
	"fmt"
	"go/doc"
	"go/doc/comment"
	"go/token"
	"regexp"
	"strings"
)

// checker collects complaints about one package.
type checker struct {
	source source
	p      *doc.Package
	fset   *token.FileSet
	index  *index
	said   []string
}

func (s source) complaints(x *index) ([]string, error) {
	p, fset, err := s.parsed()
	if err != nil {
		return nil, err
	}
	c := &checker{source: s, p: p, fset: fset, index: x}
	c.text(token.NoPos, "package "+s.Name, p.Doc)
	c.values(p.Consts)
	c.values(p.Vars)
	c.functions("", p.Funcs)
	for _, t := range p.Types {
		c.text(t.Decl.Pos(), t.Name, t.Doc)
		c.values(t.Consts)
		c.values(t.Vars)
		c.functions("", t.Funcs)
		c.functions(t.Name+".", t.Methods)
	}
	c.examples()
	return c.said, nil
}

func (c *checker) say(at token.Pos, format string, args ...any) {
	place := c.source.ImportPath
	if at.IsValid() {
		place = c.fset.Position(at).String()
	}
	c.said = append(c.said, place+": "+fmt.Sprintf(format, args...))
}

func (c *checker) generated(at token.Pos) bool {
	return strings.HasSuffix(c.fset.Position(at).Filename, ".pb.go")
}

func (c *checker) values(list []*doc.Value) {
	for _, v := range list {
		if v.Doc == "" && len(v.Decl.Specs) > 1 || c.generated(v.Decl.Pos()) {
			continue // a group: its members explain themselves, which revive checks
		}
		c.text(v.Decl.Pos(), strings.Join(v.Names, ", "), v.Doc)
	}
}

// obvious are methods that implement what the standard library explains.
var obvious = map[string]bool{"Error": true, "String": true, "Unwrap": true, "Is": true, "MarshalText": true}

func (c *checker) functions(prefix string, list []*doc.Func) {
	for _, f := range list {
		if f.Doc == "" && prefix != "" && obvious[f.Name] || c.generated(f.Decl.Pos()) {
			continue
		}
		c.text(f.Decl.Pos(), prefix+f.Name, f.Doc)
	}
}

// text checks one doc comment.
func (c *checker) text(at token.Pos, what, text string) {
	if at.IsValid() && c.generated(at) {
		return
	}
	if strings.TrimSpace(text) == "" {
		c.say(at, "%s has no documentation", what)
		return
	}
	for _, block := range c.p.Parser().Parse(text).Content {
		c.block(at, what, block)
	}
}

func (c *checker) block(at token.Pos, what string, block comment.Block) {
	switch block := block.(type) {
	case *comment.Heading:
		c.links(at, what, block.Text)
	case *comment.Paragraph:
		c.links(at, what, block.Text)
	case *comment.List:
		for _, item := range block.Items {
			for _, inner := range item.Content {
				c.block(at, what, inner)
			}
		}
	}
}

// meant matches what looks like a link to a symbol, a part of which is exported, but is plain text.
var meant = regexp.MustCompile(`\[\*?(?:[\w./-]*\.)?[A-Z]\w*(?:\.[A-Z]\w*)?\]`)

func (c *checker) links(at token.Pos, what string, texts []comment.Text) {
	for _, text := range texts {
		switch text := text.(type) {
		case comment.Plain:
			for _, broken := range meant.FindAllString(string(text), -1) {
				c.say(at, "%s: %s is not a link", what, broken)
			}
		case *comment.Link:
			c.links(at, what, text.Text)
		case *comment.DocLink:
			symbol := text.Name
			if text.Recv != "" {
				symbol = text.Recv + "." + text.Name
			}
			path := text.ImportPath
			if path == "" {
				path = c.source.ImportPath
			}
			if !c.index.has(path, symbol) {
				c.say(at, "%s: there is no %s in %s", what, symbol, path)
			}
		}
	}
}

func (c *checker) examples() {
	list := c.p.Examples
	for _, f := range c.p.Funcs {
		list = append(list, f.Examples...)
	}
	for _, t := range c.p.Types {
		list = append(list, t.Examples...)
		for _, f := range append(append([]*doc.Func(nil), t.Funcs...), t.Methods...) {
			list = append(list, f.Examples...)
		}
	}
	for _, e := range list {
		if e.Output != "" || e.EmptyOutput {
			return
		}
	}
	shown := strings.Contains(c.p.Doc, "\n\t") // and the pages have the same, compiled
	if !shown && !strings.Contains(c.source.ImportPath, "/drivertest") && !strings.HasSuffix(c.source.ImportPath, "pb") {
		c.say(token.NoPos, "its documentation shows no code, and no example has an output that is checked")
	}
}
