package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A change is one mutant.
type change struct {
	number     int
	place      string // file:line
	function   string // folder.Type.Method
	text       string // what becomes of what
	dir        string
	reachedBy  []*test
	result     string
	killer     string
	wasCounted int // how many earlier ones of the function have the same text
}

func (c *change) key() string {
	if c.wasCounted > 0 {
		return fmt.Sprintf("%s\t%s #%d", c.function, c.text, c.wasCounted+1)
	}
	return c.function + "\t" + c.text
}

// An edit replaces drop bytes of a file.
type edit struct {
	at, drop int
	text     string
	closes   bool
}

// A source is a file whose conditions and calls get switches.
type source struct {
	root, path string
	text       []byte
	files      *token.FileSet
	function   string
	done       map[ast.Node]bool
	edits      []edit
	changes    *[]*change
}

// instrument returns the file's text with switches, and appends their mutants to changes.
func instrument(root, path string, changes *[]*change) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // G304: a file of this tree
	if err != nil {
		return nil, err
	}
	s := &source{root: root, path: path, text: text, files: token.NewFileSet(), done: map[ast.Node]bool{}, changes: changes}
	parsed, err := parser.ParseFile(s.files, path, text, parser.ParseComments)
	if err != nil || ast.IsGenerated(parsed) {
		return text, err
	}
	before := len(*changes)
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			s.function = strings.ReplaceAll(filepath.Dir(path), "/", ".") + "." + name(f)
			ast.Inspect(f.Body, s.visit)
		}
	}
	if len(*changes) == before {
		return text, nil
	}
	s.around(parsed.Name, "", `; import "`+switches+`"`)
	return s.apply(), nil
}

func name(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.IfStmt:
		s.cond(n.Cond, true, true)
	case *ast.ForStmt:
		if n.Cond != nil {
			s.cond(n.Cond, true, true)
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			s.cases(n.Body.List)
		}
	case *ast.BinaryExpr:
		if slices.Contains(truths, n.Op) {
			s.cond(n, true, true)
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			s.cond(n, true, true)
		}
	case *ast.BlockStmt:
		s.statements(n.List)
	case *ast.CaseClause:
		s.statements(n.Body)
	case *ast.CommClause:
		s.statements(n.Body)
	}
	return true
}

func (s *source) cases(list []ast.Stmt) {
	for _, c := range list {
		if c, ok := c.(*ast.CaseClause); ok {
			for _, e := range c.List {
				s.cond(e, true, true)
			}
		}
	}
}

// truths are the operators whose result is a bool.
var truths = []token.Token{token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ}

var relations = map[token.Token]string{
	token.LSS: "Less", token.LEQ: "LessEqual", token.GTR: "Greater", token.GEQ: "GreaterEqual",
}

var bounds = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
}

// cond makes e true and false. What an operand cannot change alone is left to the whole: "a && b" becomes
// "true && b", "a && true" and "false".
func (s *source) cond(e ast.Expr, yes, no bool) {
	if s.done[e] {
		return
	}
	s.done[e] = true
	switch x := e.(type) {
	case *ast.ParenExpr:
		s.cond(x.X, yes, no)
		return
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			s.cond(x.X, no, yes)
			return
		}
	case *ast.BinaryExpr:
		if x.Op == token.LAND || x.Op == token.LOR {
			and := x.Op == token.LAND
			s.wrap(e, yes && !and, no && and)
			s.cond(x.X, and, !and)
			s.cond(x.Y, and, !and)
			return
		}
		s.wrap(e, yes, no)
		if f := relations[x.Op]; f != "" {
			n := s.add(x.OpPos, s.said(e)+" with "+bounds[x.Op].String())
			s.around(e, fmt.Sprintf("mutant.%s(%d, ", f, n), ")")
			s.edits = append(s.edits, edit{at: s.offset(x.OpPos), drop: len(x.Op.String()), text: ","})
		}
		return
	}
	s.wrap(e, yes, no)
}

func (s *source) wrap(e ast.Expr, yes, no bool) {
	var numbers [2]int
	for i, wanted := range []bool{yes, no} {
		if wanted {
			numbers[i] = s.add(e.Pos(), s.said(e)+" is "+[]string{"true", "false"}[i])
		}
	}
	if numbers != [2]int{} {
		s.around(e, "mutant.If(", fmt.Sprintf(", %d, %d)", numbers[0], numbers[1]))
	}
}

// statements leaves calls out, one at a time. Those to a mutex are for the race detector to judge.
func (s *source) statements(list []ast.Stmt) {
	for _, st := range list {
		var call ast.Expr
		switch st := st.(type) {
		case *ast.ExprStmt:
			call = st.X
		case *ast.DeferStmt:
			call = st.Call
		}
		c, ok := call.(*ast.CallExpr)
		if !ok {
			continue
		}
		switch f := c.Fun.(type) {
		case *ast.Ident:
			if f.Name == "panic" {
				continue
			}
		case *ast.SelectorExpr:
			if slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, f.Sel.Name) {
				continue
			}
		}
		n := s.add(st.Pos(), "without "+s.said(st))
		s.around(st, fmt.Sprintf("if mutant.Do(%d) { ", n), " }")
	}
}

func (s *source) add(at token.Pos, text string) int {
	c := &change{
		number: len(*s.changes) + 1, function: s.function, text: text, dir: filepath.Dir(s.path),
		place: fmt.Sprintf("%s:%d", s.path, s.files.Position(at).Line),
	}
	for _, other := range *s.changes {
		if other.function == c.function && other.text == c.text {
			c.wasCounted++
		}
	}
	*s.changes = append(*s.changes, c)
	return c.number
}

func (s *source) offset(p token.Pos) int { return s.files.Position(p).Offset }

// said is a node's text on one line.
func (s *source) said(n ast.Node) string {
	text := strings.Join(strings.Fields(string(s.text[s.offset(n.Pos()):s.offset(n.End())])), " ")
	if len(text) > 90 {
		text = text[:90] + "…"
	}
	return text
}

func (s *source) around(n ast.Node, before, after string) {
	s.edits = append(s.edits,
		edit{at: s.offset(n.Pos()), text: before},
		edit{at: s.offset(n.End()), text: after, closes: true})
}

// apply returns the text with all edits. At one place, what ends there comes first, the innermost before the others.
func (s *source) apply() []byte {
	var all, begins []edit
	for _, e := range s.edits {
		if e.closes {
			all = slices.Insert(all, 0, e)
		} else {
			begins = append(begins, e)
		}
	}
	all = append(all, begins...)
	slices.SortStableFunc(all, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var out []byte
	at := 0
	for _, e := range all {
		out = append(append(out, s.text[at:e.at]...), e.text...)
		at = e.at + e.drop
	}
	return append(out, s.text[at:]...)
}
