# Two commands set everything up: `make demo` and `make test`. What they need is made when missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export UV_LINK_MODE ?= hardlink

.PHONY: help demo test down verify lint types generate unit trainer integration e2e bench-control-plane bench-exporter bench-trace clean

help:  ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-22s %s\n", $$1, $$2}'

demo: $(VENV)/ready  ## Run a real cluster, train the example in it, show its dollars per sample
	@$(BIN)/python -m tests.demo

test: $(VENV)/ready lint types  ## Check and test everything, on a real cluster
	@$(BIN)/python -m pytest

down:  ## End the demo's cluster and everything in it
	@test ! -e .cluster || { $(MAKE) --quiet $(VENV)/ready && $(BIN)/python -m tests.cluster down; }

verify: $(VENV)/ready generate lint types  ## Regenerate, check, fail on a difference
	@git diff --exit-code && test -z "$$(git status --porcelain)" || (git status --short; exit 1)

generate: $(VENV)/ready  ## Write crds/, roles, rules, docs/metrics.md from their sources
	@$(BIN)/python -m kopeck.deploy

lint: $(VENV)/ready  ## Check style, formatting and the layers of the house
	@$(BIN)/ruff check --quiet && $(BIN)/ruff format --check --quiet
	@$(BIN)/lint-imports --no-cache > $(VENV)/imports.log || (cat $(VENV)/imports.log; exit 1)

types: $(VENV)/ready  ## Check types
	@$(BIN)/mypy

unit: $(VENV)/ready  ## Test what needs neither a cluster nor a training: a minute
	@$(BIN)/python -m pytest tests/unit --ignore=tests/unit/trainer

trainer: $(VENV)/ready  ## Test the trainer: a quarter of an hour
	@$(BIN)/python -m pytest tests/unit/trainer

integration: $(VENV)/ready  ## Test the operator on a real API server
	@$(BIN)/python -m pytest tests/integration

e2e: $(VENV)/ready  ## Test training in real pods (root)
	@$(BIN)/python -m pytest tests/e2e

bench-control-plane: $(VENV)/ready  ## Measure the operator: 200 jobs of 4 pods
	@$(BIN)/python -m tests.bench.control_plane

bench-exporter: $(VENV)/ready  ## Measure the exporter beside eight ranks and eight GPUs: two minutes
	@$(BIN)/python -m tests.bench.exporter

bench-trace: $(VENV)/ready  ## Measure reading a trace of 474 MB beside HTA: four minutes
	@$(BIN)/python -m tests.bench.trace

clean:  ## Remove what was built here; caches stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache dist

$(VENV)/ready: pyproject.toml
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet 'uv>=0.5'
	@echo "Installing kopeck and its tools into $(VENV) (PyTorch is large the first time)" >&2
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --editable '.[dev]'
	@touch $@
