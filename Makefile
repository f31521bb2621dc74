# Works over every module of the repository: the root and each nested go.mod.
# tools/go.mod is left out: it pins the tools and holds no code.
MODULES := $(sort $(dir $(shell find . -name go.mod -not -path ./tools/go.mod -not -path '*/testdata/*' -not -path '*/.*/*')))

# A version stamp is of no use here, and the go command fails to make one in a checkout that
# belongs to another user.
export GOFLAGS := $(filter-out -buildvcs=%,$(shell go env GOFLAGS)) -buildvcs=false

TOOL := go tool -modfile="$(CURDIR)/tools/go.mod"

TESTFLAGS ?= -shuffle=on -count=1 -timeout=15m
BENCHFLAGS ?= -benchmem
BENCH ?= .
RATIOFLAGS ?= -only layers,held-10000
PEERFLAGS ?=
SEED ?= 1
FUZZTIME ?= 60s

# $(call each,command) runs the command in every module, all of them even if one fails.
each = @rc=0; for m in $(MODULES); do echo "== $$m"; (cd "$$m" && $(1)) || rc=1; done; exit $$rc

# What the conformance runs of "make test" have shown, for the table in docs/backends.md.
RECORDS := $(CURDIR)/.evidence
EVIDENCE = cd tools/evidence && go run . -from "$(RECORDS)" -doc "$(CURDIR)/docs/backends.md"
# A run of some tests is evidence for nothing.
PARTIAL = $(filter -run% -skip% -short%,$(TESTFLAGS))

# The nested modules mostly wait, for servers and for clocks: "make test" runs two at a time.
TEST = HOLDFAST_REQUIRE_SERVERS=1 HOLDFAST_EVIDENCE="$(RECORDS)" go test -race $(TESTFLAGS) ./...

# Any seed can be run again, with its faults and every worker's choices.
STORM = cd core/internal/weather && HOLDFAST_REQUIRE_SERVERS=1 go test -count=1 -timeout=90m -v .

# $(call rain,duration) is a run of bad weather in every service, all of them even if one fails,
# and then their figures as docs/guarantees.md shows them.
FIGURES := $(CURDIR)/.weather
rain = @rc=0; rm -f "$(FIGURES)"; for s in one plain redlock cluster sentinel replicas; do \
	($(STORM) -run '^TestWeather$$' -args -weather.service $$s -weather.for $(1) -weather.seed $(SEED) -weather.figures "$(FIGURES)") || rc=1; done; \
	(cd core/internal/weather && go run ./figures <"$(FIGURES)") || rc=1; exit $$rc

.DEFAULT_GOAL := help
.PHONY: help build vet test evidence servers lint golangci lock-order vulncheck fmt tidy tidy-check bench bench-peers charts bench-backends weather weather-quick weather-long weather-peers hours soak fuzz ci

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: ## compile every package of every module
	$(call each,go build ./...)

vet: ## run go vet
	$(call each,go vet ./...)

test: servers ## run all tests with -race against real servers; a missing server is a failure
	@rm -rf "$(RECORDS)"; mkdir "$(RECORDS)"; rc=0; echo "== ./"; $(TEST) || rc=1; \
	printf '%s\n' $(filter-out ./,$(MODULES)) | xargs -P 2 -I{} sh -c \
		'out=$$(cd {} && $(TEST) 2>&1); rc=$$?; echo "== {}"; echo "$$out"; exit $$rc' || rc=1; \
	if [ $$rc -eq 0 ] && [ -z "$(PARTIAL)" ]; then $(EVIDENCE) -check || rc=1; fi; exit $$rc

evidence: ## write what the last "make test" has shown into the table of docs/backends.md
	@$(EVIDENCE)

servers: ## install the servers that the tests need, on Debian as root; else say what is missing
	@tools/install-servers.sh

lint: golangci vulncheck ## run all linters and the vulnerability check

golangci: ## run golangci-lint, which checks the formatting and the import fences too
	$(call each,$(TOOL) golangci-lint run --config "$(CURDIR)/.golangci.yml" ./...)

lock-order: ## look for mutexes that are taken in two orders, 1 minute (LOCKORDER, packages)
	@tools/lockorder.sh

vulncheck: ## look for known vulnerabilities; skipped, loudly, where the database is out of reach
	@tools/govulncheck.sh $(MODULES)

fmt: ## format all Go code
	$(call each,$(TOOL) golangci-lint fmt --config "$(CURDIR)/.golangci.yml" ./...)

tidy: ## tidy every go.mod
	$(call each,go mod tidy)

tidy-check: ## fail if a go.mod or go.sum is not tidy
	$(call each,go mod tidy -diff)

bench: ## run the benchmarks, and what a lock costs beside the floor (BENCH, BENCHFLAGS, RATIOFLAGS)
	go test -run '^$$' -bench '$(BENCH)' $(BENCHFLAGS) $(patsubst %,./%/...,$(wildcard core httpmw grpcmw taskmw))
	@if [ -f core/bench/go.mod ]; then cd core/bench && go run . $(RATIOFLAGS); fi

bench-peers: ## measure beside other lock libraries, 10 minutes (PEERFLAGS="-help" lists what can be said)
	@cd core/bench && go run . $(PEERFLAGS)

charts: ## draw the charts of docs from the tables of docs/performance.md
	@cd tools/charts && go run .

bench-backends: servers ## measure the backends beside each other, 2 minutes
	@cd core/bench/backends && HOLDFAST_REQUIRE_SERVERS=1 go test -count=1 -timeout=30m -args -figures

weather: servers ## run bad weather, 30 s in each service and 30 s of late commands, then all mutants: 30 minutes (SEED)
	$(call rain,30s)
	$(STORM) -run '^TestWeather$$' -args -weather.for 30s -weather.gap 2s -weather.only uneven,pause,hold -weather.seed $(SEED)
	$(STORM) -run Mutant -args -weather.mutants -weather.seed $(SEED)

hours: ## run leases through faults in virtual time for 3,000 hours, and 200,000 combinations: half an hour
	cd core && HOLDFAST_MODEL_HOURS=500 go test -run '^TestHoursOfFaultsKeepOneHolderAndEveryCallBounded$$' -count=1 -timeout=60m -v .
	cd core && HOLDFAST_MODEL_SEEDS=200000 go test -run '^TestEveryCombinationKeepsOneHolderAndServesEverybody$$' -count=1 -timeout=90m .

weather-quick: servers ## run bad weather on one server for 20 s (SEED)
	$(STORM) -run '^TestWeather$$' -args -weather.for 20s -weather.seed $(SEED)

weather-long: servers ## run bad weather, 10 minutes in each service: an hour (SEED)
	$(call rain,10m)

weather-peers: servers ## run other lock libraries in bad weather, 30 s each (SEED)
	cd core/bench && HOLDFAST_REQUIRE_SERVERS=1 go test -count=1 -timeout=30m -v ./baseline -args -baseline.for 30s -baseline.seed $(SEED)

soak: servers ## 3 processes, 200 names, 500 goroutines and random kills for 15 minutes (SEED)
	$(STORM) -run '^TestSoak$$' -args -weather.soak 15m -weather.seed $(SEED)

fuzz: ## run every fuzz test for FUZZTIME, 60s unless told
	@FUZZTIME=$(FUZZTIME) tools/fuzz.sh

ci: ## what CI runs: lint, test, lock-order and weather-quick
	@.ci/run
