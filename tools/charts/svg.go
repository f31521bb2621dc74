package main

import (
	"fmt"
	"html"
	"strings"
)

// width is that of every picture. At about 700 pixels the smallest text is still 12 pixels high.
const width = 720

// picture is an SVG with a background of its own, so that it can be read on any page, and with
// a second set of colours for readers who prefer dark.
type picture struct {
	title  string
	height int
	parts  strings.Builder
}

const style = `
.bg{fill:#fff;stroke:#d1d9e0}.t{fill:#1f2328}.m{fill:#59636e}.g{stroke:#d1d9e0}.a{stroke:#59636e;fill:none}.h{fill:#59636e}
.us{fill:#0969da}.them{fill:#9aa4af}.floor{fill:#d8dee4}.box{fill:#f6f8fa;stroke:#59636e}.key{fill:#ddf4ff;stroke:#0969da}
@media(prefers-color-scheme:dark){
.bg{fill:#0d1117;stroke:#3d444d}.t{fill:#f0f6fc}.m{fill:#9198a1}.g{stroke:#3d444d}.a{stroke:#9198a1}.h{fill:#9198a1}
.us{fill:#4493f8}.them{fill:#767e88}.floor{fill:#444c56}.box{fill:#151b23;stroke:#9198a1}.key{fill:#0c2d6b;stroke:#4493f8}}
`

func (p *picture) add(format string, args ...any) { fmt.Fprintf(&p.parts, format+"\n", args...) }

// text writes one line. Class is "t" for text or "m" for what matters less; anchor is start,
// middle or end.
func (p *picture) text(x, y float64, class, anchor string, size int, text string) {
	weight := ""
	if strings.HasPrefix(text, "*") { // bold
		text, weight = text[1:], ` font-weight="600"`
	}
	p.add(`<text class="%s" x="%s" y="%s" text-anchor="%s" font-size="%d"%s>%s</text>`,
		class, num(x), num(y), anchor, size, weight, html.EscapeString(text))
}

func (p *picture) rect(x, y, w, h float64, class string) {
	p.add(`<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="2"/>`, class, num(x), num(y), num(w), num(h))
}

func (p *picture) line(x1, y1, x2, y2 float64, class string) {
	p.add(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

func (p *picture) bytes() []byte {
	title := html.EscapeString(p.title)
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s" font-family="system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif">
<title>%s</title>
<style>%s</style>
<rect class="bg" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>
%s</svg>
`, width, p.height, width, p.height, title, title, style, width-1, p.height-1, p.parts.String())
}

// num is short, and the same on every machine.
func num(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.1f", x), "0"), ".")
}
