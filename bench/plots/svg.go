package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// drawing is an SVG that is built line by line. Colours are classes of the style,
// so that it fits a light and a dark page.
type drawing struct {
	width, height float64
	body          strings.Builder
}

const style = `<style>
svg{background:#fff}
text{fill:#24292f;font:12px system-ui,sans-serif}
.title{font-size:15px;font-weight:600}
.small{font-size:11px}
.grid{stroke:#d8dee4;stroke-width:1}
.axis{stroke:#57606a;stroke-width:1}
.whisker{stroke:#24292f;stroke-width:1.5}
.tidemark{stroke:#0969da;fill:#0969da}
.kafka{stroke:#bc4c00;fill:#bc4c00}
polyline{fill:none!important;stroke-width:2}
text.tidemark,text.kafka{stroke:none}
@media(prefers-color-scheme:dark){
svg{background:#0d1117}
text{fill:#e6edf3}
.grid{stroke:#30363d}
.axis{stroke:#8b949e}
.whisker{stroke:#e6edf3}
.tidemark{stroke:#58a6ff;fill:#58a6ff}
.kafka{stroke:#f0883e;fill:#f0883e}
}
</style>
`

func newDrawing(width, height float64) *drawing { return &drawing{width: width, height: height} }

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.body, format+"\n", args...) }

// text writes at a point; anchor is start, middle or end.
func (d *drawing) text(x, y float64, class, anchor, s string) {
	d.add(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, html.EscapeString(s))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	d.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

func (d *drawing) bar(x, y, w, h float64, class string) {
	d.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"/>`, x, y, w, h, class)
}

func (d *drawing) dot(x, y float64, class string) {
	d.add(`<circle cx="%.1f" cy="%.1f" r="3" class="%s"/>`, x, y, class)
}

// path joins points; dash is "" for a solid line.
func (d *drawing) path(points [][2]float64, class, dash string) {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%.1f,%.1f", p[0], p[1])
	}
	d.add(`<polyline points="%s" class="%s" stroke-dasharray="%s"/>`, b.String(), class, dash)
}

func (d *drawing) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n%s%s</svg>\n",
		d.width, d.height, d.width, d.height, style, d.body.String())
}

// scale maps values on a logarithmic axis to pixels.
type scale struct {
	least, most float64 // values
	from, to    float64 // pixels
}

// logScale covers the values, from a tick at or below the least to one at or above
// the most. Values of 0 and below do not count.
func logScale(values []float64, from, to float64) scale {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 {
			least, most = min(least, v), max(most, v)
		}
	}
	if math.IsInf(least, 0) {
		least, most = 1, 1
	}
	s := scale{math.Pow(10, math.Floor(math.Log10(least)+1e-9)), math.Pow(10, math.Ceil(math.Log10(most)-1e-9)), from, to}
	for _, step := range []float64{5, 2} { // closer, where half a decade is empty
		if s.least*step <= least {
			s.least *= step
			break
		}
	}
	for _, step := range []float64{5, 2} {
		if s.most/step >= most {
			s.most /= step
			break
		}
	}
	if s.least >= s.most {
		s.least, s.most = s.least/10, s.most*10
	}
	return s
}

// at is the pixel of a value; what is below the axis is at its start.
func (s scale) at(v float64) float64 {
	v = min(max(v, s.least), s.most)
	return s.from + (s.to-s.from)*math.Log(v/s.least)/math.Log(s.most/s.least)
}

// ticks are round values: 1, 2 and 5 of each decade, or powers of ten alone when
// those are many.
func (s scale) ticks() []float64 {
	steps := []float64{1, 2, 5}
	if math.Log10(s.most/s.least) > 2.5 {
		steps = steps[:1]
	}
	var out []float64
	for exp := math.Floor(math.Log10(s.least)); ; exp++ {
		for _, step := range steps {
			v := step * math.Pow(10, exp)
			if v > s.most*1.001 {
				return out
			}
			if v >= s.least*0.999 {
				out = append(out, v)
			}
		}
	}
}

// number writes a value as people do: 10,000 and 0.25.
func number(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.4g", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
