# Everything below sets itself up: `make run` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find lrms_sim grms broker -name '*.pyx' -o -name '*.pxd') setup.py
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test lint format types bench debug proto dist clean

help:  ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Hanse needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "Python's venv module is missing; on Debian: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' \
	  || { echo "Python's C headers are missing; on Debian: apt install python3-dev" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what Hanse needs into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'setuptools>=77' 'cython>=3.1' wheel
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[dev]'
	@touch $@ $(VENV)/.built

$(VENV)/.built: $(VENV)/.installed $(SOURCES)
	@echo "Compiling the kernels …"
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

setup: $(VENV)/.built  ## Create the virtual environment and compile the kernels

run: setup  ## Replay three synthetic sites, alone and federated, and write the report
	@$(BIN)/scenario run synthetic-three-sites --output out/synthetic-three-sites

test: setup  ## Run the test suite
	$(BIN)/pytest $(PYTEST_ARGS)

lint: setup  ## Lint and type-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/cython-lint lrms_sim grms
	$(BIN)/mypy

format: setup  ## Format the Python code
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .

bench: setup  ## Measure speed; figures go to benchmarks/
	$(BIN)/python benchmarks/run.py

debug: setup  ## Build with bounds checks and run the tests against that build
	HANSE_DEBUG=1 $(BIN)/python setup.py --quiet build --build-base build/checked --build-lib build/checked/lib
	PYTHONPATH=build/checked/lib HANSE_CHECKED_BUILD=1 $(BIN)/pytest $(PYTEST_ARGS)

proto: setup  ## Regenerate the code for the wire contract
	$(BIN)/python proto/generate.py

dist: setup  ## Build sdist and wheel into dist/
	$(BIN)/python -m build --no-isolation

clean:  ## Remove everything that was built
	rm -rf build dist out .venv *.egg-info
	find lrms_sim grms broker -name '*.so' -delete
