package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// prom is a Prometheus of our own.
type prom struct {
	address string
	dir     string
	process *exec.Cmd
}

const config = `global: {scrape_interval: 1s}
scrape_configs:
  - job_name: preview
    static_configs: [{targets: [%q]}]
`

// startPrometheus starts one on a free port, and has it scrape target.
func startPrometheus(ctx context.Context, target string) (*prom, error) {
	dir, err := os.MkdirTemp("", "holdfast-preview-")
	if err != nil {
		return nil, err
	}
	p := &prom{dir: dir}
	if p.address, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, target), 0o600); err != nil {
		return nil, err
	}
	p.process = exec.CommandContext(ctx, "prometheus", "--config.file="+file, "--storage.tsdb.path="+dir, //nolint:gosec // G204: our own arguments
		"--web.listen-address="+p.address, "--log.level=error")
	p.process.Stderr = os.Stderr
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		if _, err = p.get(ctx, "query", url.Values{"query": {"up == 1"}}); err == nil {
			return p, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.stop()
	return nil, err
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (p *prom) stop() {
	_ = p.process.Process.Kill() // it may have ended
	_ = p.process.Wait()
	_ = os.RemoveAll(p.dir)
}

// rateInterval is what rates are taken over: before that, there are none.
const rateInterval = 10 * time.Second

// series is one line of an answer.
type series struct {
	Metric map[string]string    `json:"metric"`
	Values [][2]json.RawMessage `json:"values"`
	Value  *[2]json.RawMessage  `json:"value"`
	Legend string               `json:"-"`
	Points []point              `json:"-"`
}

type point struct{ At, Value float64 }

func (p *prom) get(ctx context.Context, api string, params url.Values) ([]*series, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/api/v1/"+api+"?"+params.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []*series }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Data.Result, nil
}

// answer sends every query of the dashboard.
func (p *prom) answer(ctx context.Context, d *dashboard, from, to time.Time) error {
	d.From, d.To = seconds(from), seconds(to)
	variables := strings.NewReplacer("$template", ".*", "$__rate_interval", rateInterval.String(), "$__range", fmt.Sprintf("%.0fs", d.To-d.From))
	var empty []error
	for _, panel := range d.Panels {
		for _, t := range panel.Targets {
			api, params := "query_range", url.Values{"start": {unix(d.From)}, "end": {unix(d.To)}, "step": {"1"}}
			if t.Instant {
				api, params = "query", url.Values{"time": {unix(d.To)}}
			}
			params.Set("query", variables.Replace(t.Expr))
			result, err := p.get(ctx, api, params)
			if err != nil {
				return fmt.Errorf("%s: %w", panel.Title, err)
			}
			points, most := 0, 0.0
			for _, s := range result {
				s.read(t.LegendFormat)
				points += len(s.Points)
				for _, v := range s.Points {
					most = max(most, v.Value)
				}
			}
			panel.Series = append(panel.Series, result...)
			fmt.Printf("%-24s %d series, %4d points, up to %.3g\n", panel.Title, len(result), points, most)
			if points == 0 || most == 0 && !t.Instant { // what a stat panel says may be over
				empty = append(empty, fmt.Errorf("%s: nothing but zeros for %s", panel.Title, t.Expr))
			}
		}
	}
	return errors.Join(empty...)
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func unix(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }

// read fills in the legend and the points that are numbers.
func (s *series) read(legend string) {
	for label, value := range s.Metric {
		legend = strings.ReplaceAll(legend, "{{"+label+"}}", value)
	}
	s.Legend = legend
	if s.Value != nil {
		s.Values = append(s.Values, *s.Value)
	}
	for _, v := range s.Values {
		at, _ := strconv.ParseFloat(string(v[0]), 64)
		value, err := strconv.ParseFloat(strings.Trim(string(v[1]), `"`), 64)
		if err == nil && value == value && value < 1e300 { // NaN: nothing to divide
			s.Points = append(s.Points, point{at, value})
		}
	}
}
