# SPDX-License-Identifier: Apache-2.0
# The short way to everything; each target is a few plain commands (CMake presets do the work). `make help` lists them.
PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Sanitizers of these compiler versions want a memory layout that is not randomised; where that is refused, as it is.
FIXED_LAYOUT = $(shell setarch -R true 2>/dev/null && echo setarch -R)
# Tracked files and new ones, so that a fresh file is formatted before its first commit.
SOURCES = $(shell git ls-files -co --exclude-standard '*.cc' '*.h')

.DEFAULT_GOAL := help
.PHONY: help setup demo build test format format-check clang sanitize threads neon bench clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

setup: ## install with apt what building needs and is missing
	@tools/setup/install.sh build

demo: build/release/build.ninja ## about a minute: build, train the chapter's one-block transformer on tiny Shakespeare, let it write
	@cmake --build build/release --target bary_command
	@tools/demo/run.sh build/release/bin/bary

build: $(BUILD)/build.ninja ## build everything (PRESET=release, dev, clang, asan, tsan)
	@cmake --build $(BUILD)

# What a skipped test misses stands only in ctest's log; here it is said once a reason, after the summary.
skipped = sed -n 's/^SKIPPED: //p' build/$(1)/Testing/Temporary/LastTest.log | sort | uniq -c | sed 's/^/skipped:/'

test: ## install what is missing, build, run every test; say what was skipped and why
	@tools/setup/install.sh build test
	@$(MAKE) --no-print-directory build PRESET=release
	@BARY_PYTHON=$$(tools/setup/python.sh) && export BARY_PYTHON && BARY_GPT2=$$(tools/setup/gpt2.sh) && \
		export BARY_GPT2 && ctest --preset release -j $(JOBS); code=$$?; $(call skipped,release); exit $$code

format: ## rewrite the sources in the house's format
	@clang-format -i $(SOURCES)

format-check: ## fail if a source is not in the house's format
	@tools/setup/install.sh check
	@clang-format --dry-run -Werror $(SOURCES)

clang: ## build everything with clang++, warnings are errors
	@tools/setup/install.sh build check
	@$(MAKE) --no-print-directory build PRESET=clang

SANITIZE ?= base kernel tensor io text report nn model train generate inspect lab cli fuzz runs
sanitize: ## tests of every floor under AddressSanitizer and UndefinedBehaviorSanitizer (SANITIZE="text io": of these only)
	@tools/setup/install.sh build check
	@$(FIXED_LAYOUT) $(MAKE) --no-print-directory build/asan/build.ninja
	@$(FIXED_LAYOUT) cmake --build build/asan --target $(SANITIZE:%=bary_%_test)
	@$(FIXED_LAYOUT) ctest --preset asan -j $(JOBS) -R "^($$(echo $(SANITIZE) | tr ' ' '|'))[.]"; \
		code=$$?; $(call skipped,asan); exit $$code

threads: ## all but the slow and the same-bits tests under ThreadSanitizer
	@tools/setup/install.sh build check
	@$(FIXED_LAYOUT) $(MAKE) --no-print-directory build PRESET=tsan
	@$(FIXED_LAYOUT) ctest --preset tsan -j $(JOBS)

neon: ## kernels for 64-bit ARM, their tests under emulation (installs a cross compiler and qemu)
	@tools/neon/run.sh

bench: build/release/build.ninja ## measure this machine and bary on it
	@cmake --build build/release --target bary_command
	@for part in machine kernels step attention decode tokenizer; do echo "== $$part"; build/release/bin/bary bench $$part || exit; done

clean: ## remove build folders (the Python environment too)
	@rm -rf build

# CMake looks after itself once configured; only a changed preset asks for a new start.
build/%/build.ninja: CMakePresets.json | setup
	@cmake --preset $*
	@touch $@
