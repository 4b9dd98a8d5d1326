# make demo and make test are all that a fresh clone needs; both install what is missing, and say so first.

SHELL := bash

.PHONY: help demo test bench fuzz truth seeds stacks install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build thru, measure between two hosts (as root: network namespaces; else: loopback) and write a report
	@scripts/demo.sh

test: ## all checks and all tests, privileged ones too when run as root
	@scripts/test.sh

bench: ## measure Throughline itself
	@if [ -x scripts/bench.sh ]; then scripts/bench.sh; else echo "there is no scripts/bench.sh in this checkout" >&2; exit 1; fi

fuzz: ## ten million broken sessions against each codec of what other programs say (8 minutes)
	@cargo bench --quiet -p throughline-speak --bench fuzz

truth: ## prove the error rates of comparisons: simulation, and A against A with the real program (10 minutes)
	@scripts/truth.sh

seeds: ## short cuts of five published experiments, in labs on this machine, as one report (root; 4 minutes)
	@scripts/seeds.sh

stacks: ## build the BPF objects of the TCP stacks from their sources (clang)
	@scripts/stacks.sh

install: ## install thru into the cargo home
	@scripts/setup.sh build
	@. scripts/lib.sh && find_rust && cargo install --path crates/throughline --locked

clean: ## remove what the builds made
	rm -rf "$${CARGO_TARGET_DIR:-target}" demo-report seeds-report
