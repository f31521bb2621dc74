# Works over every module of the repository: the root and each nested go.mod.
# tools/go.mod is left out: it pins the tools and holds no code.
MODULES := $(sort $(dir $(shell find . -name go.mod -not -path ./tools/go.mod -not -path '*/testdata/*' -not -path '*/.*/*')))

# A version stamp is of no use here, and the go command fails to make one in a checkout that
# belongs to another user.
export GOFLAGS := $(filter-out -buildvcs=%,$(shell go env GOFLAGS)) -buildvcs=false

# go.work is for commands typed by hand: "go run ./examples/demo", "go test ./..." in any folder. Here each
# module is built with what its own go.mod says, as its users build it.
export GOWORK := off

TOOL := go tool -modfile="$(CURDIR)/tools/go.mod"

TESTFLAGS ?= -shuffle=on -count=1 -timeout=30m
BENCHFLAGS ?=
SEED ?= 1
FUZZTIME ?= 60s

# $(call each,command) runs the command in every module, all of them even if one fails.
each = @rc=0; for m in $(MODULES); do echo "== $$m"; (cd "$$m" && $(1)) || rc=1; done; exit $$rc

# $(call beside,number,modules,command) runs the command in modules, so many at a time, all of them even if one fails. What
# each has to say comes in one piece, when it has ended. The file $HOLDFAST_RED, if it is set, gets what
# those said that failed.
beside = printf '%s\n' $(2) | xargs -P $(1) -I{} sh -c 'out=$$(cd {} && $(3) 2>&1); rc=$$?; echo "== {}"; echo "$$out"; \
	[ $$rc -eq 0 ] || { echo "== {}"; echo "$$out"; } >>"$${HOLDFAST_RED:-/dev/null}"; exit $$rc'

# What has failed, once more, at the end and without the logs around it.
FAILURES = { echo "== what has failed:"; grep -E -A4 '^== |^ *--- FAIL: |^panic: |^fatal error: |^goleak: |DATA RACE|^FAIL.*/' "$$HOLDFAST_RED" | \
	grep -vE '^--$$|log of .* on |^(ok|\?) ' | head -n 100; }

# The tests mostly wait, for servers and for clocks: "make test" runs three modules at a time, those that take longest
# first. On a new machine the compiler has minutes of work beside them: it gets what they leave.
LONGEST := ./ ./core/sqllock/ ./core/zklock/ ./core/internal/harness/
TEST = HOLDFAST_REQUIRE_SERVERS=1 go test -race -toolexec "nice -n 19" $(TESTFLAGS) ./...

# Any seed can be run again, with its faults and every worker's choices.
STORM = cd core/internal/harness/weather && HOLDFAST_REQUIRE_SERVERS=1 go test -count=1 -timeout=90m -v .

# A smaller storm on each of the other backends, all of them even if one fails.
STORMS = @rc=0; for m in sqllock etcdlock natslock zklock; do \
	(cd core/$$m && HOLDFAST_REQUIRE_SERVERS=1 go test -count=1 -timeout=10m -v -run '^TestAStorm' . -args -storm.for 30s -storm.seed $(SEED)) || rc=1; done; exit $$rc

# $(call rain,duration) is a run of bad weather in every service, all of them even if one fails,
# and then their figures, as tables.
FIGURES := $(CURDIR)/.weather
rain = @rc=0; rm -f "$(FIGURES)"; for s in one plain redlock cluster sentinel replicas; do \
	($(STORM) -run '^TestWeather$$' -args -weather.service $$s -weather.for $(1) -weather.seed $(SEED) -weather.figures "$(FIGURES)") || rc=1; done; \
	(cd core/internal/harness/weather && go run ./figures <"$(FIGURES)") || rc=1; exit $$rc

.DEFAULT_GOAL := help
.PHONY: help build vet test servers lint golangci lock-order vulncheck fmt tidy tidy-check bench bench-backends bench-postgres release release-check test-newest fips servers-matrix docs weather weather-quick weather-long hours soak fuzz ci spec

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: ## compile every package of every module
	$(call each,go build ./...)

vet: ## run go vet
	$(call each,go vet ./...)

test: servers ## run all tests with -race against real servers; a missing server is a failure
	@rc=0; export HOLDFAST_RED=$$(mktemp); trap 'rm -f "$$HOLDFAST_RED"' EXIT; \
	$(call beside,3,$(LONGEST) $(filter-out $(LONGEST),$(MODULES)),$(TEST)) || { rc=1; $(FAILURES); }; exit $$rc

test-newest: servers ## run all tests with the newest dependencies; a go.mod made on the fly asks for them
	@HOLDFAST_REQUIRE_SERVERS=1 tools/newest.sh $(MODULES) -- test -race $(TESTFLAGS) ./...

release-check: ## make a release in a temporary clone, and install all of it from there: 5 minutes
	@cd tools && go run ./release -check

release: ## make the release VERSION=v0.2.0: two commits and all tags; nothing is pushed
	@cd tools && go run ./release -version $(VERSION)

docs: ## look at the documentation as pkg.go.dev shows it: everything has some, no link is broken
	@cd tools && go run ./doccheck $(addprefix ../,$(MODULES))

servers: ## install the servers that the tests need, on Debian as root; else say what is missing
	@tools/install-servers.sh

lint: golangci vulncheck ## run all linters and the vulnerability check

# The packages are compiled with -race, as "make test" has them: on a new machine that is half of the work of both.
golangci: ## run golangci-lint, which checks the formatting and the import fences too
	@lint=$$($(TOOL) -n golangci-lint) && export lint GOFLAGS="$(GOFLAGS) -race" && \
	$(call beside,2,$(MODULES),"$$lint" run --allow-parallel-runners --config "$(CURDIR)/.golangci.yml" ./...)

lock-order: ## look for mutexes that are taken in two orders, 1 minute (LOCKORDER, packages)
	@tools/lockorder.sh

spec: ## search the model of the queue, docs/spec, exhaustively, 2 minutes (needs gcc; installs spin as servers does)
	@tools/install-servers.sh spin
	@tools/spec.sh

vulncheck: ## look for known vulnerabilities; skipped, loudly, where the database is out of reach
	@tools/govulncheck.sh $(MODULES)

fmt: ## format all Go code
	$(call each,$(TOOL) golangci-lint fmt --config "$(CURDIR)/.golangci.yml" ./...)

tidy: ## tidy every go.mod, and have go.work list them all
	$(call each,go mod tidy)
	GOWORK="$(CURDIR)/go.work" go work use $(MODULES)

tidy-check: ## fail if a go.mod or go.sum is not tidy, or go.work lacks a module
	$(call each,go mod tidy -diff)
	@for m in $(patsubst %/,%,$(MODULES)); do grep -qx "	$$m" go.work || { echo "go.work lacks $$m: make tidy"; exit 1; }; done

bench: servers ## measure beside other lock libraries, 6 minutes (BENCHFLAGS="-only pair,handover", -scale, -help)
	@cd core/internal/harness/bench && go run . $(BENCHFLAGS)

bench-backends: servers ## measure the backends beside each other, 2 minutes
	@cd core/internal/harness/backends && HOLDFAST_REQUIRE_SERVERS=1 go test -count=1 -timeout=30m -args -figures

fips: servers ## run tests of every door and backend in FIPS 140-only mode, 3 minutes
	@tools/fips.sh

servers-matrix: ## run redislock's tests and bad weather on several servers, for docs/servers.md (HOLDFAST_REDIS_SERVERS="/path /path")
	@tools/servers-matrix.sh

bench-postgres: servers ## a million pairs on PostgreSQL, logged and not: size, dead rows, HOT, WAL; 10 minutes
	@cd core/sqllock && HOLDFAST_REQUIRE_SERVERS=1 go test -count=1 -timeout=60m -v -run '^TestManyPairsLeaveASmallTable$$' . -args -pairs 1000000

weather: servers ## run bad weather, 30 s in each service and 30 s of late commands, storms of the other backends, then all mutants: 40 minutes (SEED)
	$(call rain,30s)
	$(STORM) -run '^TestWeather$$' -args -weather.for 30s -weather.gap 2s -weather.only uneven,pause,hold -weather.seed $(SEED)
	$(STORMS)
	$(STORM) -run Mutant -args -weather.mutants -weather.seed $(SEED)

hours: ## run leases through faults in virtual time for 3,000 hours, and 200,000 combinations: half an hour
	cd core && HOLDFAST_MODEL_HOURS=500 go test -run '^TestHoursOfFaultsKeepOneHolderAndEveryCallBounded$$' -count=1 -timeout=60m -v .
	cd core && HOLDFAST_MODEL_SEEDS=200000 go test -run '^TestEveryCombinationKeepsOneHolderAndServesEverybody$$' -count=1 -timeout=90m .

weather-quick: servers ## run bad weather on one server for 20 s (SEED)
	$(STORM) -run '^TestWeather$$' -args -weather.for 20s -weather.seed $(SEED)

weather-long: servers ## run bad weather, 10 minutes in each service: an hour (SEED)
	$(call rain,10m)

soak: servers ## 3 processes, 200 names, 500 goroutines and random kills for 15 minutes (SEED)
	$(STORM) -run '^TestSoak$$' -args -weather.soak 15m -weather.seed $(SEED)

fuzz: ## run every fuzz test for FUZZTIME, 60s unless told
	@FUZZTIME=$(FUZZTIME) tools/fuzz.sh

ci: ## what CI runs: lint, test, lock-order, spec and weather-quick
	@.ci/run
