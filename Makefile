# Every target is one command for one purpose. What takes more than a line is a script in scripts/.
.DEFAULT_GOAL := help
.PHONY: help run example-postgres test verify fix bench e2e fuzz clean

help: ## what there is
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 26

run: ## build urutau and run the quickstart into a fresh ./warehouse
	@scripts/quickstart

example-postgres: ## start a PostgreSQL, fill it with a small shop, and copy it while it trades
	@scripts/example-postgres

test: ## everything that CI runs: formatting, lints, docs, unit, property, simulation and end-to-end tests
	@scripts/test

verify: ## the quick form for daily work: formatting, lints, unit tests; writes nothing but the target folder
	@scripts/test quick

fix: ## format the code
	cargo fmt --all

e2e: ## the end-to-end tests alone
	@scripts/test e2e

fuzz: ## feed each fuzz target for FUZZ_SECONDS (60); needs a nightly toolchain
	@scripts/fuzz

bench: ## rows per CPU-second of the release binary, bytes, commits
	@scripts/bench

clean: ## remove what was built, downloaded and written
	rm -rf target .cache fuzz/Cargo.lock fuzz/artifacts
	@for place in warehouse warehouse-postgres; do if [ -e $$place/catalog.db ]; then rm -rf $$place; fi; done
