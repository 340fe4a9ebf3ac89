# Development of gormlock. `make help` lists the targets.
#
# Two of them do everything on a fresh machine, as root or not, with PostgreSQL
# installed or not: `make demo` and `make test`.

.DEFAULT_GOAL := help
SHELL := bash

# One version of the linter everywhere: here, in .ci/run and in the workflow.
LINT_VERSION := v2.15.0
# A linter must be built with the Go whose packages it reads.
LINT = .bin/golangci-lint-$(LINT_VERSION)-$(shell go env GOVERSION 2>/dev/null)

VULN_VERSION := v1.8.0
# A copy of the Go vulnerability database's entries: make vuln VULNDB=file:///srv/vulndb/data/osv. Empty: the database itself.
VULNDB ?=

# What users do not need lies in modules of its own. Most of them are built and tested together with the root, in a
# workspace; those apart require much that the others do not. internal/modules keeps all in step: make tidy.
TOGETHER := examples gormlocktest observe/otelobserve tests
APART := bench gormlockvet internal/pgserver/fetch tests/adapters tests/compat
workspace := GOWORK=$(CURDIR)/scripts/go.work

# What to test, of any module, and how: make test PKG=./lockkey TESTFLAGS='-run Fuzz -v'
PKG ?= ./...
TESTFLAGS ?=
all_together := ./... $(TOGETHER:%=./%/...)
packages := $(if $(filter ./...,$(PKG)),$(all_together) $(patsubst %,./%/...,$(filter-out bench internal/pgserver/fetch,$(APART))),$(PKG))
together := $(filter-out $(foreach m,$(APART),./$(m) ./$(m)/%),$(packages))
# of MODULE: those of the packages that lie in a module which is apart, from there
of = $(patsubst ./$(1)%,.%,$(filter ./$(1) ./$(1)/%,$(packages)))
# Tests that start no goroutine of their own gain little from the race detector, and take twice to eight times as long with it:
# where all packages are tested, these are without. tests/make_test.go sees that it stays with those that start one.
ALONE := tests/api tests/belongs tests/census tests/clauses tests/costs tests/docs tests/events tests/hooks tests/invariants tests/matrix tests/rollbacks tests/versions
# The analyzers of gormlockvet share nothing between goroutines.
flags = $(if $(filter gormlockvet,$(1)),$(filter-out -race,$(2)),$(2))
raced := ./tests $(patsubst %,./%...,$(filter-out $(ALONE:%=%/) $(APART:%=%/),$(sort $(wildcard tests/*/))))
# The race detector sleeps for a second when a test binary ends, of which there are some seventy, so that goroutines may still
# report; the testing package has asked for reports by then.
export GORACE ?= atexit_sleep_ms=50
# What is built does not say where it was built, so that a clone in another directory need not compile it again.
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
# The PostgreSQL to test on: 14 to 18 from npm. Empty: the one at hand.
PG ?=
export PG
PG_VERSIONS ?= 14 15 16 17 18
FUZZTIME ?= 20s
BENCHFLAGS ?=

with_postgres := scripts/with-postgres

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: go ## see the three main things on a throw-away server; ALL=1: all features
	@ALL=$(ALL) $(with_postgres) go -C examples run ./tour

# Its three parts may run beside each other: make -j2 test.
.PHONY: test test-together test-apart test-alone
test: test-together test-apart test-alone ## run all tests, with the race detector where goroutines meet

test_tools := go cc postgres rails pgbouncer pgpool pglite mariadb
race := -race -timeout 20m

test-together: $(test_tools)
	$(if $(together),$(workspace) $(with_postgres) go test $(race) $(TESTFLAGS) $(if $(filter ./...,$(PKG)),$(together:./tests/...=$(raced)),$(together)))

define each_apart
	$(foreach m,$(APART),$(if $(call of,$(m)),$(with_postgres) go -C $(m) test $(call flags,$(m),$(race)) $(TESTFLAGS) $(call of,$(m))
))
endef
test-apart: $(test_tools)
	$(each_apart)

test-alone: $(test_tools)
	$(if $(filter ./...,$(PKG)),$(workspace) $(with_postgres) go test -timeout 20m $(TESTFLAGS) $(ALONE:%=./%))

.PHONY: test-matrix
test-matrix: ## run all tests on PostgreSQL 14 to 18, downloaded with npm
	@for version in $(PG_VERSIONS); do \
		echo "== PostgreSQL $$version"; \
		$(MAKE) --no-print-directory test PG=$$version || exit; \
	done

.PHONY: torture
torture: go cc pgbouncer ## run the torture tests at full length
	GORMLOCK_TORTURE=1 $(workspace) $(with_postgres) go test -race -count=1 -timeout 60m -v -run Torture $(TESTFLAGS) $(together)

.PHONY: fuzz
fuzz: go ## run each fuzz test for FUZZTIME
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for name in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
			$(with_postgres) go -C $$dir test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) . || exit; \
		done; \
	done

.PHONY: mutants
mutants: go mariadb ## break the versioned write in one place at a time, and see that a test notices
	$(with_postgres) go run ./scripts/mutants $(MUTANTS)

.PHONY: bench
bench: go redis ## measure gormlock beside its peers, and write docs/benchmarks.md
	@TMPDIR=$${TMPDIR:-/tmp} $(with_postgres) go -C bench run ./report $(BENCHFLAGS)

.PHONY: cover
cover: go rails pgbouncer pgpool pglite mariadb ## run all tests and show what they leave out
	@mkdir -p .bin
	@$(workspace) $(with_postgres) go test -timeout 10m -coverpkg=./... -coverprofile=.bin/cover.out $(TESTFLAGS) $(together)
	@go tool cover -html=.bin/cover.out -o .bin/cover.html
	@go tool cover -func=.bin/cover.out | tail -1
	@echo "every line: .bin/cover.html"

.PHONY: examples
examples: go cc rails ## build and vet the examples, and run their tests
	go -C examples build -o /dev/null ./...
	go -C examples vet ./...
	$(workspace) $(with_postgres) go test -race -timeout 20m ./examples/...

.PHONY: fmt
fmt: $(LINT) ## format the code
	$(LINT) fmt

.PHONY: vet
vet: go ## run go vet
	@$(workspace) go vet $(all_together)
	@for module in $(APART); do go -C $$module vet ./... || exit; done

.PHONY: lint
lint: $(LINT) ## run the linters of .golangci.yml
	@$(workspace) $(LINT) run $(all_together)
	@for module in $(APART); do (cd $$module && $(CURDIR)/$(LINT) run) || exit; done
	@scripts/vet-gormlock

.PHONY: vuln
vuln: go ## look for known vulnerabilities in what is built and tested; needs the internet, or VULNDB
	@for module in . $(TOGETHER) $(APART); do \
		echo "== $$module"; \
		go -C $$module run golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION) $(if $(VULNDB),-db $(VULNDB)) -test ./... || exit; \
	done

.PHONY: tidy
tidy: go ## bring all go.mod and go.sum in line with the code, and in step with the root's
	@go run ./scripts/modules sync

.PHONY: ci
ci: ## run all that has to pass before a merge
	@bash .ci/run

.PHONY: postgres
postgres: ## find or install PostgreSQL
	@$(with_postgres) true

.PHONY: rails
rails: ## find or install Ruby with ActiveRecord, for tests/interop
	@scripts/require-rails

.PHONY: clean
clean: ## remove what was downloaded and built here
	rm -rf .bin

.PHONY: go
go:
	@scripts/require-go

.PHONY: cc
cc: go
	@scripts/require-cc

.PHONY: pgbouncer
pgbouncer: ## find or install PgBouncer, for sessionlock and lease
	@scripts/require-pgbouncer

.PHONY: pgpool
pgpool: ## find or install Pgpool-II
	@scripts/require-pgpool

.PHONY: mariadb
mariadb: ## find or install MariaDB
	@scripts/require-mariadb

.PHONY: pglite
pglite: ## find or install PGlite, a look-alike of PostgreSQL
	@[ -n "$${GORMLOCK_WITHOUT_PGLITE-}" ] || scripts/npm-pglite >/dev/null

.PHONY: chromium
chromium: ## find or install Chromium, for the page of inspect
	@scripts/require-chromium

.PHONY: shells
shells: ## find or install zsh and fish, whose completion is tested
	@scripts/require-shells

.PHONY: redis
redis: ## find or install Redis, for bench
	@scripts/require-redis

$(LINT): | go
	@mkdir -p $(@D)
	@echo "building golangci-lint $(LINT_VERSION), about a minute"
	@GOBIN=$(CURDIR)/.bin GOFLAGS= go install -trimpath github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv .bin/golangci-lint $@
