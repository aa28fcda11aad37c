PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PLOTS := $(VENV)/.plots
PEERS := .venv-peers

.DEFAULT_GOAL := help
.PHONY: help setup demo docs fmt lint types unit fuzz simulate e2e chaos test bench bench-short \
	bench-peers audit licences image up down

help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-11s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## Make .venv with all that is locked, and the project itself

# Only Python's own tools; every file is checked against its hash, and nothing else is fetched.
$(INSTALLED): deploy/requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "processor needs Python 3.11 or newer: make setup PYTHON=python3.11")'
	@echo "making $(VENV): about a minute, the first time"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --require-hashes -r deploy/requirements.lock
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## Run the main job from nothing; FILES="a.jsonl ..." and BROKER=jvm|docker|given if you like
	$(BIN)/processor demo $(if $(BROKER),--broker $(BROKER)) $(FILES)

fmt: setup ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lint: setup ## Check style, spelling and pyproject.toml
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/validate-pyproject pyproject.toml

types: setup ## Check types
	$(BIN)/mypy

unit: setup ## Run the tests that need no broker, in seconds
	$(BIN)/pytest $(wildcard tests/unit tests/property tests/simulation tests/chaos)

fuzz: setup ## Throw many damaged inputs at everything that reads bytes from outside; minutes
	$(BIN)/pytest --hypothesis-profile=fuzz $(wildcard tests/property/test_fuzz_*.py)

simulate: setup ## Play more histories of the partition protocol; HISTORIES=10000 SEED=0
	$(BIN)/python -m tests.simulation $(or $(HISTORIES),10000) $(or $(SEED),0)

e2e: setup ## Run the tests on a real broker, found or started
	$(BIN)/pytest tests/e2e

chaos: setup ## Break workers, network and brokers under load; SECONDS=180 SEED=0 BROKERS=1|3
	$(BIN)/python -m tests.chaos $(or $(SECONDS),180) $(or $(SEED),0) $(or $(BROKERS),1)

# One after the other, even under -j: pytest's closing lines come last.
test: setup ## Run everything
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory types
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory e2e

bench: $(PLOTS) ## Measure beside the installed peers, about 20 minutes; ARGS="--help" for the options
	$(BIN)/python benchmarks/bench.py $(ARGS)

bench-short: setup ## Measure for two minutes, and fail if it fell behind the committed figures
	$(BIN)/python benchmarks/bench.py --short

# In an environment of their own: what the peers depend on need not fit.
bench-peers: ## Install the peers that are Python packages; Kafka Streams needs a JDK and Maven
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet -r benchmarks/peers/requirements.txt

$(PLOTS): $(INSTALLED) deploy/bench.lock
	@$(BIN)/pip install --quiet --require-hashes -r deploy/bench.lock
	@touch $@

docs: setup ## Make the documentation's site in build/site; a warning is an error
	$(BIN)/sphinx-build -W --keep-going --quiet -E -c docs . build/site
	@echo "open build/site/index.html"

# Strict: where the index has no advisories it would else have nothing to say, and pass.
audit: ## Look for known faults of all that is locked; needs PyPI's advisories
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/pip install --quiet --require-hashes -r deploy/audit.lock
	$(VENV)/audit/bin/pip-audit --strict --require-hashes --disable-pip --progress-spinner off \
		-r deploy/requirements.lock

licences: setup ## Write docs/licences.md
	$(BIN)/python -m tests.licences

image: ## Build the image in Docker: the same commit gives the same bytes
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) docker buildx build --provenance=false \
		--build-arg COMMIT=$$(git rev-parse --short=12 HEAD) \
		--output type=docker,name=processor:0.1.0,rewrite-timestamp=true .

up: ## Start Kafka and two workers in Docker
	docker compose up --build --detach

down: ## Stop them and forget their data
	docker compose --profile "*" down --volumes
