# Two commands do all the set-up on a fresh machine: `make app` and `make test`.
# They need Python 3.11 or newer and make; `make test PYTHON=/path/to/python` names another Python.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3.11)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where Python is told to keep no bytecode, each process of the tests would compile the project anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest
INSTALL := $(BIN)/python -m pip install --quiet --no-input --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help app test test-all test-versions mutants check format lint types bench gpu docs wheel constraints clean

help:
	@echo "make app      install and open the dashboard (PORT=$(PORT))"
	@echo "make test     install and run the tests"
	@echo "make test-all the same with the slow tests"
	@echo "make test-versions  a part of the tests with other Pythons and other versions of the libraries"
	@echo "make mutants  change one line at a time and see whether the tests notice"
	@echo "make check    format, lint, types, then the tests"
	@echo "make docs     build the documentation as a website in build/docs"
	@echo "make wheel    build the package in build/wheel"
	@echo "make bench    side-by-side measurements against other libraries"
	@echo "make gpu      parity, speed and memory on a machine with CUDA, in nine minutes"
	@echo "make clean    remove the environment and every tool's leftovers"

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Exegesis needs Python 3.11 or newer; set PYTHON to one, got: $(PYTHON)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Could not make $(VENV); on Debian and Ubuntu install python3-venv first." >&2; exit 1; }
	@touch $@

$(VENV)/.app: pyproject.toml constraints.txt $(VENV)/.made
	@echo "Installing Exegesis into $(VENV); the first time takes a few minutes."
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt $(VENV)/.made
	@echo "Installing Exegesis and its test tools into $(VENV); the first time takes a few minutes."
	@$(INSTALL) --editable '.[dev]'
	@$(INSTALL) --no-deps lxt  # its rules alone: the rest of it asks for bitsandbytes and torchvision
	@touch $@ $(VENV)/.app

$(VENV)/.docs: pyproject.toml constraints.txt $(VENV)/.made
	@$(INSTALL) --editable '.[docs]'
	@touch $@ $(VENV)/.app

app: $(VENV)/.app
	$(BIN)/exegesis app --port $(PORT)

# Tests run on all cores, a file at a time, the longest files first (tests/conftest.py), each process with one thread:
# with a thread a core they would stand in each other's way. With ARGS, pytest runs as it is told, in one process.
# Only test-all checks shapes and types at run time: functions are checked from their first call on
# (tests/lazy_checks.py), and each call then takes longer.
PARALLEL := --numprocesses=auto --maxprocesses=8 --dist=loadfile --no-loadscope-reorder

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(PYTEST) $(if $(ARGS),$(ARGS),$(PARALLEL) -m "not slow" tests)

test-all: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(PYTEST) $(PARALLEL) --jaxtyping-packages=engine,cache,components,beartype.beartype tests

# With the oldest and newest libraries that pyproject.toml allows, and with each Python of VERSIONS that is here.
test-versions:
	.ci/versions $(VERSIONS)

# Which one-line changes the tests notice, compared with tests/mutants/results.tsv; see the README there.
mutants: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants $(ARGS)

check: format lint types test

format: $(VENV)/.dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(ARGS)

# Writes docs/gpu.json and the tables of docs/gpu.md.
gpu: $(VENV)/.dev
	$(BIN)/python -m benchmarks gpu $(ARGS)

# MkDocs announces its next version unless this variable is set.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open build/docs/index.html in a browser."

wheel: $(VENV)/.made
	@rm -rf build/lib build/wheel
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	@ls build/wheel/*.whl

# The tested versions, written anew from the environment that has just passed the tests. A local build
# tag such as +cpu is cut off: it names a build of the same version, and each machine has its own.
constraints: $(VENV)/.dev
	@$(BIN)/python -m pip freeze --exclude-editable | sed 's/+.*//' > constraints.txt
	@touch $(VENV)/.app $(VENV)/.dev

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
