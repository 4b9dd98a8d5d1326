# A fresh clone needs only make demo and make test; both say what they install.

SHELL := bash

.PHONY: help demo check test test-long bench fuzz soak truth seeds stacks release install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build thru, run a demo measurement (as root between network namespaces, else over loopback) and write a report
	@scripts/demo.sh

check: ## format, lints, and the tests of the crates that neither read files nor use the network
	@scripts/check.sh

test: ## run all checks and tests, as root also the privileged ones
	@scripts/test.sh

test-long: ## run what takes too long for make test: fuzz, codecs, truth, seeds, 600 kills, every command of the manual, a fleet of 2,000 simulated hosts, a short soak, loom, valgrind, a build without optional parts, and a release built twice (root; 100 minutes)
	@scripts/test-long.sh

bench: ## compare thru with other tools over loopback
	@if [ -x scripts/bench.sh ]; then scripts/bench.sh; else echo "scripts/bench.sh is missing" >&2; exit 1; fi

fuzz: ## run coverage-guided tests of all that reads bytes from elsewhere (a minute each; 20 minutes)
	@scripts/fuzz.sh

soak: ## hold two agents under a thousand clients, garbage and kills, and check that nothing grows or is left (root; an hour)
	@scripts/soak.sh

truth: ## check error rates: of comparisons, and of thru why over 72 paths with a known limit, and of curves on recorded legs and beside each other (root; 25 minutes)
	@scripts/truth.sh

seeds: ## run shortened versions of five published experiments in labs, with one report (root; 4 minutes)
	@scripts/seeds.sh

stacks: ## build the BPF objects of the TCP stacks from source (clang)
	@scripts/stacks.sh

release: ## build the files of a release from the current commit in target/release-files, with their bill of materials
	@scripts/release.sh

install: ## install thru to cargo's bin folder
	@scripts/setup.sh build
	@. scripts/lib.sh && find_rust && cargo install --path crates/throughline --locked

clean: ## remove build results and reports
	rm -rf "$${CARGO_TARGET_DIR:-target}" demo-report seeds-report
