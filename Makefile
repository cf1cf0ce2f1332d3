# Each target sets up what it needs from nothing: Python 3.11, Java 17 (for Spark) and the package registries.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help

.PHONY: help demo test mutants check bench lock clean

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

.venv/ready: pyproject.toml constraints.txt
	@echo "Setting up .venv (a minute or two, once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	@$(BIN)/uv pip install --compile-bytecode --python $(BIN)/python -c constraints.txt -e ".[all,dev]"
	@touch $@

demo: .venv/ready ## replay a year of New York flights through Spark, watch the answer change
	@$(BIN)/skyband demo --spark

test: .venv/ready ## all tests and doctests
	@$(BIN)/python -m tests.warm
	@$(BIN)/python -m pytest -n 2 -q

mutants: .venv/ready ## break the engines in every known way: the tests must notice
	@SKYBAND_MUTANTS=all $(BIN)/python -m pytest -n 2 -q tests/test_mutants.py

check: .venv/ready ## lint, format, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

bench: .venv/ready ## run the experiments, draw the figures
	@$(BIN)/python -m benchmarks.run
	@$(BIN)/python -m benchmarks.plot

lock: .venv/ready ## pin the newest versions that fit
	@$(BIN)/uv pip compile pyproject.toml --all-extras --python-version 3.11 --upgrade --quiet \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links -o constraints.txt
	@echo "uv==$$($(BIN)/uv --version | cut -d' ' -f2)" >> constraints.txt

clean: ## remove what can be made again
	rm -rf .venv out/demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
