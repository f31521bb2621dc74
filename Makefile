# Works over every module of the repository: the root and each nested go.mod.
MODULES := $(sort $(dir $(shell find . -name go.mod -not -path '*/testdata/*' -not -path '*/.*/*')))

# A version stamp is of no use here, and the go command fails to make one in a checkout that
# belongs to another user.
export GOFLAGS := $(filter-out -buildvcs=%,$(shell go env GOFLAGS)) -buildvcs=false

# go.work is for commands typed by hand: "go run ./examples/demo", "go test ./..." in any folder. Here each
# module is built with what its own go.mod says, as its users build it.
export GOWORK := off

TOOL := go tool -modfile="$(CURDIR)/tools/go.mod"

TESTFLAGS ?= -short -shuffle=on -count=1 -timeout=30m
BENCHFLAGS ?=
VERSION ?=
STEPS ?=
# Of "make chaos". Any seed can be run again, with its faults and every worker's choices.
SEED ?= 1
FOR ?= 30s
# How much later than promised a call may come back: on a machine that others use, more.
SLACK ?=
SERVICE ?= one redlock cluster replicas postgres mysql sqlite etcd etcd3 nats nats3 zookeeper zookeeper3

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
# first. On a new machine the compiler has minutes of work beside them: it gets what they leave. "make lint" has all that vet finds.
LONGEST := ./ ./core/sqllock/ ./core/zklock/ ./core/internal/harness/
# zklock goes without -race: go-zookeeper/zk 1.0.4 has a race of its own as it connects again (conn.go:614 and 849).
TEST = HOLDFAST_REQUIRE_SERVERS=1 go test $$(case $$PWD in */core/zklock) ;; *) echo -race;; esac) -vet=off -toolexec "nice -n 19" $(TESTFLAGS) ./...

.DEFAULT_GOAL := help
.PHONY: help build test test-all lint fmt tidy docs bench chaos explore release servers

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: ## compile every package of every module
	$(call each,go build ./...)

test: servers ## run the tests with -race against real servers; a missing server is a failure
	@rc=0; export HOLDFAST_RED=$$(mktemp); trap 'rm -f "$$HOLDFAST_RED"' EXIT; \
	$(call beside,3,$(LONGEST) $(filter-out $(LONGEST),$(MODULES)),$(TEST)) || { rc=1; $(FAILURES); }; exit $$rc

test-all: servers ## run what is slow too: topologies, mutants, models, the newest dependencies; 90 minutes (STEPS)
	@tools/test-all.sh $(STEPS)

# The packages are compiled with -race, as "make test" has them: on a new machine that is half of the work of both.
lint: ## run golangci-lint, with the formatting and the import fences, make docs, and look for known vulnerabilities
	@lint=$$($(TOOL) -n golangci-lint) && export lint GOFLAGS="$(GOFLAGS) -race" && \
	$(call beside,2,$(MODULES),"$$lint" run --allow-parallel-runners --config "$(CURDIR)/.golangci.yml" ./...)
	@$(MAKE) --no-print-directory docs
	@tools/govulncheck.sh $(MODULES)

fmt: ## format all Go code
	$(call each,$(TOOL) golangci-lint fmt --config "$(CURDIR)/.golangci.yml" ./...)

tidy: ## tidy every go.mod, and have go.work list them all but that of tools
	$(call each,go mod tidy)
	GOWORK="$(CURDIR)/go.work" go work use $(filter-out ./tools/,$(MODULES))

docs: ## look at the documentation as pkg.go.dev shows it: everything has some, no link is broken
	@cd tools && go run ./doccheck $(addprefix ../,$(MODULES))

bench: servers ## measure beside other lock libraries, 6 minutes (BENCHFLAGS="-only pair,handover", -scale), or beside the commit AGAINST
	@$(if $(AGAINST),tools/bench-against.sh $(AGAINST),cd core/internal/harness/bench && go test -count=1 -timeout=2h -v -run '^TestBench$$' . -args -figures) $(BENCHFLAGS)

comma := ,
space := $(subst ,, )
chaos: servers ## break processes, links and servers, FOR=30s in each SERVICE, from SEED=1; RESULTS=file gets a line for each, KEEP=dir all of it
	cd core/internal/harness/chaos && HOLDFAST_REQUIRE_SERVERS=1 go test -count=1 -timeout=90m -v -run '^TestChaos$$' . -args \
	-chaos.service $(subst $(space),$(comma),$(strip $(SERVICE))) -chaos.for $(FOR) -chaos.seed $(SEED) $(if $(SLACK),-chaos.slack $(SLACK)) -chaos.results '$(abspath $(RESULTS))' -chaos.keep '$(abspath $(KEEP))'

explore: ## play the engine's steps deeper, and break its rules: 20 minutes (SEED, DEPTH, SCHEDULES)
	go test -count=1 -v -timeout 2h -run TestEverySchedule ./core/internal/explore -args -explore.seed $(SEED) -explore.depth $(or $(DEPTH),3) -explore.most $(or $(SCHEDULES),30000) -explore.random $(or $(SCHEDULES),30000)
	cd core/internal/harness/chaos && go test -count=1 -v -timeout 2h -run TestEveryMutantIsCaught . -args -chaos.mutants 'explorer: '

release: ## try a release in a temporary clone, and install all of it from there; VERSION=v0.2.0 makes it, and pushes nothing
	@tools/release.sh $(VERSION)

servers: ## install the servers that the tests need, on Debian as root; else say what is missing
	@tools/install-servers.sh
