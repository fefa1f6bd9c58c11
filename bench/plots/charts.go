package main

import (
	"fmt"
	"slices"
)

// row is one bar: how many times better Tidemark is.
type row struct {
	label              string
	value, least, most float64
}

const (
	chartWidth = 830.0
	barHeight  = 22.0
	labels     = 390.0 // room for what bars are called
	top        = 58.0
)

// bars draws ratios from 1 on: to the right where Tidemark is better, to the left
// where Apache Kafka is. Thin lines show the least and the most of the pairs.
func bars(title, below string, rows []row) string {
	d := newDrawing(chartWidth, top+barHeight*float64(len(rows))+52)
	d.text(16, 24, "title", "start", title)
	values := []float64{1}
	for _, r := range rows {
		values = append(values, r.least, r.most)
	}
	x := logScale(values, labels, chartWidth-70)
	bottom := top + barHeight*float64(len(rows))
	for _, v := range x.ticks() {
		d.line(x.at(v), top-6, x.at(v), bottom, "grid")
		d.text(x.at(v), bottom+16, "small", "middle", number(v)+"×")
	}
	d.line(x.at(1), top-6, x.at(1), bottom, "axis")
	d.text(x.at(1)+6, top-12, "small tidemark", "start", "Tidemark is better →")
	if x.at(1) > labels+60 {
		d.text(x.at(1)-6, top-12, "small kafka", "end", "← Kafka")
	}
	for i, r := range rows {
		y := top + barHeight*float64(i)
		class, from, to := "tidemark", x.at(1), x.at(r.value)
		if r.value < 1 {
			class, from, to = "kafka", to, from
		}
		d.text(labels-10, y+15, "", "end", r.label)
		d.bar(from, y+4, max(to-from, 1), barHeight-9, class)
		d.line(x.at(r.least), y+barHeight/2, x.at(r.most), y+barHeight/2, "whisker")
		d.text(chartWidth-60, y+15, "small", "start", fmt.Sprintf("%.3g×", r.value))
	}
	d.text(16, bottom+40, "small", "start", below)
	return d.String()
}

// series is one line of a chart.
type series struct {
	label  string
	class  string // tidemark or kafka
	dash   string // of the stroke; "" is solid
	points [][2]float64
}

// chart is what lines draws.
type chart struct {
	title, x, y string
	steps       bool // x values have equal distances, so that 0 has a place
	series      []series
}

// Where the axes of a chart of lines begin and end.
const (
	lineHeight = 400.0
	left       = 70.0
	right      = chartWidth - 190 // beside it stands what the lines are
	floorY     = lineHeight - 56
)

// lines draws values over sizes, both on logarithmic axes.
func lines(c chart) string {
	d := newDrawing(chartWidth, lineHeight)
	d.text(16, 24, "title", "start", c.title)
	var xs, ys []float64
	for _, s := range c.series {
		for _, p := range s.points {
			xs, ys = append(xs, p[0]), append(ys, p[1])
		}
	}
	y := logScale(ys, floorY, top)
	for _, v := range y.ticks() {
		d.line(left, y.at(v), right, y.at(v), "grid")
		d.text(left-8, y.at(v)+4, "small", "end", number(v))
	}
	x := c.across(d, xs)
	d.line(left, floorY, right, floorY, "axis")
	d.text((left+right)/2, lineHeight-14, "", "middle", c.x)
	d.text(16, top-14, "", "start", c.y)
	for i, s := range c.series {
		var points [][2]float64
		for _, p := range s.points {
			points = append(points, [2]float64{x(p[0]), y.at(p[1])})
		}
		d.path(points, s.class, s.dash)
		for _, p := range points {
			d.dot(p[0], p[1], s.class)
		}
		at := top + 20*float64(i)
		d.path([][2]float64{{right + 16, at}, {right + 44, at}}, s.class, s.dash)
		d.text(right+52, at+4, "", "start", s.label)
	}
	return d.String()
}

// across draws the marks of the horizontal axis, and returns where values are.
func (c chart) across(d *drawing, xs []float64) func(float64) float64 {
	slices.Sort(xs)
	xs = slices.Compact(xs)
	log := logScale(xs, left, right)
	at, marks := log.at, log.ticks()
	if c.steps {
		marks = xs
		at = func(v float64) float64 {
			return left + (right-left)*(float64(slices.Index(xs, v))+0.5)/float64(len(xs))
		}
	}
	for _, v := range marks {
		d.line(at(v), floorY, at(v), floorY+5, "axis")
		d.text(at(v), floorY+19, "small", "middle", number(v))
	}
	return at
}
