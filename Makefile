# 'make' alone says what there is. The work is done by the scripts in tools/.

# PG: versions of PostgreSQL to use, of our own servers.      make test PG=17      make test PG="16 17"
# PG_CONFIG: your own server instead.                         make demo PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config
# KINDS: kinds of test to run: model unit pg_test sql isolation client upgrade package     make test PG=17 KINDS="sql isolation"
# ROWS: rows of the benchmark to run, by how their names begin.    make bench PG=17 ROWS="turn leased"
PG ?=
PG_CONFIG ?=
KINDS ?=
ROWS ?=
SUDO ?=
DESTDIR ?=
export PG_CONFIG KINDS SUDO DESTDIR

# PGXN's client, as the makefiles of extensions in C want it, calls 'make all' and 'make install' with PG_CONFIG.
.DEFAULT_GOAL := $(if $(PG_CONFIG),all,help)
.PHONY: help all demo test test-all chaos fuzz figures bench install uninstall package dist lint setup clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## /  make \1|/p' $(MAKEFILE_LIST) | column -t -s '|'
	@sed -n 's/^# \([A-Z_]*: .*\)/  \1/p' $(MAKEFILE_LIST)

demo: ## set up what is missing, then run a workflow on a queue in a throwaway server
	@tools/demo.sh $(or $(PG_CONFIG),$(PG),17)

test: ## lint, then all tests on all four versions of PostgreSQL (one: PG=17)
	@PG_CONFIG= tools/test.sh $(PG)

test-all: ## the same, with every test on every version
	@PG_CONFIG= TEST_ALL=1 tools/test.sh $(PG)

chaos: ## kill dispatchers, backends and the server for 90 s, then audit every message (PG=17)
	@PG_CONFIG= tools/chaos.sh $(PG)

fuzz: ## 120,000 calls with hostile arguments, in databases of four encodings (PG=17)
	@PG_CONFIG= tools/fuzz.sh $(PG)

figures: ## memory, WAL and pages after 100,000 calls of each kind, measured (PG=17)
	@PG_CONFIG= tools/figures.sh $(PG)

bench: ## against duroxide-pg's own procedures, into docs/performance.md (PG=17; some rows only: ROWS="turn leased")
	@PG_CONFIG= tools/bench.sh $(firstword $(PG) 17) $(ROWS)

all: ## release build for your server, in build/; 'make install' then only copies: PG_CONFIG=/path/to/pg_config
	@FOUND_PG_CONFIG=$$(command -v pg_config) tools/build.sh "$(PG_CONFIG)"

install: ## release build into your server: PG_CONFIG=/path/to/pg_config, SUDO=1 to copy as root
	@FOUND_PG_CONFIG=$$(command -v pg_config) tools/install.sh "$(PG_CONFIG)"

uninstall: ## remove the extension's files from your server again
	@FOUND_PG_CONFIG=$$(command -v pg_config) tools/install.sh --remove "$(PG_CONFIG)"

package: ## a package for Debian and Ubuntu, in dist/ (PG=17; with PG_CONFIG against that server's headers)
	@tools/package.sh $(or $(PG_CONFIG),$(PG))

dist: ## the last commit as a PGXN distribution, dist/duroxide_queue-<version>.zip
	@tools/dist.sh

lint: ## formatting and clippy
	@PG_CONFIG= tools/setup.sh $(PG)
	@tools/lint.sh $(PG)

setup: ## only set up what is missing
	@tools/setup.sh $(PG)

clean: ## remove build output, keep downloads
	@tools/clean.sh
