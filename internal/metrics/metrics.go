// Package metrics counts, for Prometheus, what a node does.
package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const namespace = "tidemark"

// latencies are the upper bounds, in seconds, of every duration that is counted:
// from 100 microseconds, in which an answer from memory fits, to 10 seconds.
var latencies = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Registry holds the metrics of one node. All methods may be called from any
// goroutine, none blocks, and those of the hot paths allocate nothing.
type Registry struct {
	prom *prometheus.Registry

	apis     [128]atomic.Pointer[API]
	apiMu    sync.Mutex // guards the making of apis and of other
	other    *API
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec

	Connections Connections
	Traffic     Traffic
	Replication Replication
	Log         Log
	Controller  Controller
}

// New makes the metrics of one node, with those of its process.
func New() *Registry {
	r := &Registry{prom: prometheus.NewRegistry()}
	r.prom.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := factory{r.prom}
	r.requests = f.counters("requests_total", "Requests answered.", "api")
	r.latency = f.histograms("request_seconds", "Time from the last byte of a request to the first of its answer.", "api")
	r.Connections.init(f)
	r.Traffic.init(f)
	r.Replication.init(f)
	r.Log.init(f)
	r.Controller.init(f)
	return r
}

// API counts the requests of one API key.
type API struct {
	count   prometheus.Counter
	latency prometheus.Observer
}

// API returns the counts of an API key, the same value each time. Keys beyond
// Kafka's share one.
func (r *Registry) API(key int16) *API {
	if key < 0 || int(key) >= len(r.apis) {
		r.apiMu.Lock()
		defer r.apiMu.Unlock()
		if r.other == nil {
			r.other = r.newAPI("Other")
		}
		return r.other
	}
	if a := r.apis[key].Load(); a != nil {
		return a
	}
	r.apiMu.Lock()
	defer r.apiMu.Unlock()
	if a := r.apis[key].Load(); a != nil {
		return a
	}
	a := r.newAPI(kmsg.NameForKey(key))
	r.apis[key].Store(a)
	return a
}

func (r *Registry) newAPI(name string) *API {
	return &API{
		count:   r.requests.WithLabelValues(name),
		latency: r.latency.WithLabelValues(name),
	}
}

// Done counts an answer that took this long.
func (a *API) Done(took time.Duration) {
	a.count.Inc()
	a.latency.Observe(took.Seconds())
}

// factory makes and registers metrics.
type factory struct{ prom *prometheus.Registry }

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	f.prom.MustRegister(c)
	return c
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	f.prom.MustRegister(c)
	return c
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	f.prom.MustRegister(g)
	return g
}

func (f factory) histogram(name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: latencies})
	f.prom.MustRegister(h)
	return h
}

func (f factory) histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: latencies}, labels)
	f.prom.MustRegister(h)
	return h
}
