package cases

import (
	"bufio"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/tidetest"
)

// meter reads the metrics of all brokers over HTTP.
type meter struct {
	t    *testing.T
	log  notes // tells where each broker's metrics are
	http http.Client
}

// measured starts three brokers, on the machine's clock, whose metrics can be
// read.
func measured(t *testing.T, opts ...tidetest.Option) (*world, *meter) {
	t.Helper()
	m := &meter{t: t, http: http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	w := newWorld(t, 3, append(opts, tidetest.Set("tidemark.http.listen", "127.0.0.1:0"),
		tidetest.Log(slog.New(slog.NewTextHandler(&m.log, nil))))...)
	return w, m
}

// sample is one reading of all brokers that run.
type sample struct {
	sum, most map[string]float64 // by name, over labels and brokers
	count     map[string]int
	series    int
	text      strings.Builder
}

// has says whether a text is in any of the series.
func (s *sample) has(text string) bool { return strings.Contains(s.text.String(), text) }

// scrape reads the metrics of all brokers that run.
func (m *meter) scrape() *sample {
	m.t.Helper()
	s := &sample{sum: map[string]float64{}, most: map[string]float64{}, count: map[string]int{}}
	for _, addr := range m.log.after("over HTTP", "address=") {
		resp, err := m.http.Get("http://" + addr + "/metrics")
		if err != nil {
			continue // of a broker that is down
		}
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			s.add(lines.Text())
		}
		resp.Body.Close()
	}
	return s
}

func (s *sample) add(line string) {
	at := strings.LastIndexByte(line, ' ')
	if at < 0 || strings.HasPrefix(line, "#") {
		return
	}
	v, err := strconv.ParseFloat(line[at+1:], 64)
	if err != nil {
		return
	}
	name, _, _ := strings.Cut(line[:at], "{")
	s.sum[name] += v
	s.most[name] = max(s.most[name], v)
	s.count[name]++
	s.series++
	s.text.WriteString(line + "\n")
}
