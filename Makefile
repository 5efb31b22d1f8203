# nodewise. `make` alone says what there is.
PREFIX ?= /usr/local
DESTDIR ?=

CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH)
# Cargo's progress is for terminals.
export CARGO_TERM_QUIET ?= $(shell [ -t 2 ] && echo false || echo true)

BIN := target/release
CLANG = $(or $(firstword $(foreach v,19 20 21 22,$(shell command -v clang-$(v)))),clang)

help:
	@echo 'make demo      the main job from recording to report, on a real program'
	@echo 'make build     $(BIN)/nodewise, nodewise-cc, nodewise-cxx, build/library/libnodewise.{a,so}'
	@echo 'make library   libnodewise alone: needs cmake and a C compiler, nothing else'
	@echo 'make check     what takes seconds of it: formatting, linters, unit tests, quick suites; no guest, no browser'
	@echo 'make test      everything that must hold'
	@echo 'make nightly   the same, with what takes long: many kills, all programs, more repeats'
	@echo 'make bench     the figures, with machine and versions'
	@echo 'make reproduce  the findings of all five papers, judged: docs/findings.md (hours; parts below)'
	@echo 'make reproduce-diener   the figures and tables of Diener et al. on our workloads'
	@echo 'make reproduce-majo     the same of Majo and Gross: remote accesses, sharing, predicted speed-ups'
	@echo 'make reproduce-mai      the same of MAI: its policies on its two machines, simulated, and in the laboratory'
	@echo 'make reproduce-ars      the same of ARS: online page migration on a simulated 4-node cluster, Figure 2 and Table 1'
	@echo 'make reproduce-asymsched  what of AsymSched our model of machine A reproduces: Tables 1 to 3, Figures 2 to 7 on our workloads'
	@echo 'make reproduce-table5   the counterpart of AsymSched, Table 5: moving memory, stock against ours, in the laboratory'
	@echo 'make reproduce-outside  what others measured on machines of several nodes, predicted (bench/outside/README.md)'
	@echo 'make pictures  of where pages land under each policy of the library, go under each online policy; of the page'
	@echo 'make install   into PREFIX ($(PREFIX)), below DESTDIR if set;  make uninstall: removes just that'
	@echo 'make install-library    the library alone, likewise'
	@echo 'make setup     all that the others need: packages, a Rust toolchain. They install it by themselves, those that'
	@echo '               build what building takes, those that test or measure the rest'
	@echo 'make fmt       format Rust, C and TypeScript;  make lint: judge them, and shell and Python'
	@echo 'make workloads the teaching programs, plain and instrumented'
	@echo 'make clean     remove what was built'

setup: build/setup-test.stamp

build/setup-build.stamp: tools/setup
	@tools/setup build
	@mkdir -p $(@D) && touch $@

build/setup-test.stamp: tools/setup build/setup-build.stamp
	@tools/setup test
	@touch $@

# Calls no setup and wants no Rust: for machines where only the library is used.
library:
	@echo 'build: library'
	@cmake -S lib -B build/library -D NODEWISE_WERROR=ON >/dev/null
	@cmake --build build/library >/dev/null

# The page's script and style, which the command carries.
web: build/setup-build.stamp
	@echo 'build: page'
	@$(MAKE) -s --no-print-directory build/web/page.js

# Whoever judges the page installs more packages than it is built with: a newer folder is no reason to build it.
build/web/page.js: web/package-lock.json web/tsconfig.json $(shell find web/src -type f) | web/node_modules/.package-lock.json
	@cd web && npm run --silent check && npm run --silent build

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	@echo 'setup: installing what the page is built with into web/node_modules (37 MB)'
	@cd web && npm ci --silent --ignore-scripts --omit=dev
	@touch $@

build: build/setup-build.stamp
	@$(MAKE) -s --no-print-directory library
	@$(MAKE) -s --no-print-directory web
	@echo 'build: nodewise (the first time it fetches 22 MB of crates and takes about 5 minutes on 2 quiet cores, 10 on busy ones)'
	@cargo build --release -p nodewise-cli
	@echo 'build: compiler pass, runtime'
	@$(MAKE) -s --no-print-directory -C compiler BUILD_DIR=$(CURDIR)/$(BIN)/lib
	@$(MAKE) -s --no-print-directory -C runtime BUILD_DIR=$(CURDIR)/$(BIN)/lib
	@$(MAKE) -s --no-print-directory validation

# The programs of `nodewise validate`; those with counters depend on what counts.
validation:
	@$(MAKE) -s --no-print-directory -C workloads validation CC=$(CLANG) OUT=$(CURDIR)/$(BIN)/validation \
	    RECORDING_CC=$(CURDIR)/$(BIN)/nodewise-cc RUNTIME=$(CURDIR)/$(BIN)/lib \
	    DEPENDS="$$(echo $(CURDIR)/$(BIN)/nodewise-cc $(CURDIR)/$(BIN)/lib/*.so)"

# The instrumented programs depend on what instruments them.
workloads: build
	@echo 'build: workloads'
	@$(MAKE) -s --no-print-directory -C workloads CC=$(CLANG) OUT=$(CURDIR)/build/workloads
	@$(MAKE) -s --no-print-directory -C workloads CC=$(CURDIR)/$(BIN)/nodewise-cc \
	    OUT=$(CURDIR)/build/workloads-recorded DEPENDS="$$(echo $(CURDIR)/$(BIN)/nodewise-cc $(CURDIR)/$(BIN)/lib/*.so)"

demo: workloads
	@tools/demo

# What is built depends on what is installed: the library has a Fortran module where there is a compiler for it.
equipped: setup
	@$(MAKE) -s --no-print-directory workloads

test: equipped
	@tools/test

check: equipped
	@tools/test --quick

nightly: equipped
	@NODEWISE_NIGHTLY=1 tools/test

bench: equipped
	@bench/run

reproduce: equipped
	@bench/reproduce all

reproduce-diener: equipped
	@bench/reproduce-diener

reproduce-majo: equipped
	@bench/reproduce-majo

reproduce-mai: equipped
	@bench/reproduce-mai

reproduce-ars: equipped
	@bench/reproduce-ars

reproduce-asymsched: equipped
	@bench/reproduce-asymsched

reproduce-table5: equipped
	@bench/reproduce-table5

reproduce-outside: equipped
	@bench/reproduce-outside

pictures: equipped
	@bench/page-maps
	@bench/online-pictures
	@bench/page-pictures

fmt: setup
	@tools/fmt

lint: setup
	@tools/lint
	@cargo clippy --release --workspace --all-targets -- -D warnings

install-library: library
	@DESTDIR='$(DESTDIR)' tools/install-library '$(PREFIX)'

# Programs, libraries next to them as in the build tree, machines, completions and manual pages.
install: build
	@DESTDIR='$(DESTDIR)' tools/install '$(PREFIX)'

uninstall:
	@DESTDIR='$(DESTDIR)' tools/uninstall '$(PREFIX)'

clean:
	rm -rf target build .venv

.PHONY: help setup equipped library web build validation workloads demo test check nightly bench reproduce reproduce-diener reproduce-majo reproduce-mai reproduce-ars reproduce-asymsched reproduce-table5 reproduce-outside pictures fmt lint install uninstall install-library clean
