package admin

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewMetrics returns the page of what collectors report, the Go runtime and the
// process among them. Its registry is its own, so that several pages can be in
// one process. Collectors that fail are logged, and do not hide the others; log
// may be nil.
func NewMetrics(log *slog.Logger, of ...prometheus.Collector) (http.Handler, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	registry := prometheus.NewRegistry()
	all := append([]prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector(),
	}, of...)
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("admin: %w", err)
		}
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}), nil
}
