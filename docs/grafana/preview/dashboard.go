package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// dashboard is what this program needs of Grafana's JSON.
type dashboard struct {
	Title    string
	Panels   []*panel
	From, To float64 // Unix time
}

type panel struct {
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Decimals   *int
			Thresholds struct{ Steps []struct{ Value *float64 } }
		}
	}
	Targets []struct {
		Expr, LegendFormat string
		Instant            bool
	}
	Series []*series `json:"-"`
}

func readDashboard(file string) (*dashboard, error) {
	text, err := os.ReadFile(file) //nolint:gosec // G304: the user says which
	if err != nil {
		return nil, err
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &d, nil
}
