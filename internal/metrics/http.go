package metrics

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server serves /metrics, /healthz and /debug/pprof over HTTP.
type Server struct {
	listener net.Listener
	http     http.Server
	done     chan struct{}
}

// Handler answers /metrics from the registry, /healthz with 200 when health
// returns nil and with 503 and its words otherwise, and /debug/pprof.
func (r *Registry) Handler(health func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// Listen opens HOST:PORT, of which port 0 is the kernel's choice, and serves
// Handler on it until Close.
func (r *Registry) Listen(address string, health func() error) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s for HTTP (%w): set tidemark.http.listen to a free HOST:PORT", address, err)
	}
	s := &Server{listener: l, done: make(chan struct{})}
	s.http = http.Server{Handler: r.Handler(health), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // always ends with ErrServerClosed after Close
	}()
	return s, nil
}

// Addr is the address that was opened.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends the server: requests have until ctx is done to finish.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("close the HTTP listener %s: %w", s.listener.Addr(), s.http.Close())
	}
	<-s.done
	return err
}
