# make        the workbench on the sample agents
# make test   everything a change must pass
PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin
LOWEST ?= .venv-lowest
LOWEST_TESTS ?= tests/test_samples.py tests/files tests/judges tests/results/test_plain_lines.py tests/cli/test_run.py tests/ui

# `call` splits at commas.
DEV_EXTRAS := adk,dask,vertex,litellm,dev

.PHONY: open test check tests golden lowest bench pictures demo-recording clean
.DEFAULT_GOAL := open

open: $(VENV)/.installed
	$(RUN)/agent-workbench sample_agents

test: check tests

check: $(VENV)/.installed-dev
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports --no-cache
	$(RUN)/python -m tests.sizes
	$(RUN)/python -m tests.habits $(BASE)

# Work is stolen in long rows: what a file prepares once is prepared by one worker, two at most.
tests: $(VENV)/.installed-dev
	$(RUN)/python -m pytest -n auto --dist worksteal

# ACCEPT=1 makes the screens as they are the snapshots. Only one process deletes those of removed scenes.
golden: $(VENV)/.installed-dev
	$(RUN)/python -m pytest tests/ui/test_golden.py $(if $(ACCEPT),--snapshot-update)

# The lowest versions that pyproject.toml allows, in an environment of their own.
lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -n auto --dist worksteal $(LOWEST_TESTS)

bench: $(VENV)/.installed-dev
	$(RUN)/python -m benchmarks

# All pictures in the README and in docs/, and the recording alone.
pictures: $(VENV)/.installed-dev
	$(RUN)/python -m docs.pictures

demo-recording: $(VENV)/.installed-dev
	$(RUN)/python -m docs.pictures recording

clean:
	rm -rf $(VENV) $(LOWEST)

# uv installs in a tenth of pip's time. It is one wheel. Where it has none, or cannot reach an index that only pip is
# configured for, pip installs.
define install
	@echo "Installing agent-workbench ($(1)) into $(VENV)"
	@$(RUN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: uv \
		&& VIRTUAL_ENV=$(abspath $(VENV)) $(RUN)/uv pip install --quiet $(2) --editable '.[$(1)]' \
		|| (echo "uv could not install it; trying pip" && $(RUN)/python -m pip install --quiet --editable '.[$(1)]')
	@touch $@
endef

# Some systems ship python3 without ensurepip; there the pip of the system fills the new environment.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "agent-workbench needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv $(VENV) 2>/dev/null \
		|| ($(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(VENV)/bin/python install --quiet pip)

$(VENV)/.installed: pyproject.toml $(VENV)/bin/python
	$(call install,adk)

$(VENV)/.installed-dev: pyproject.toml $(VENV)/bin/python
	$(call install,$(DEV_EXTRAS),--compile-bytecode)
	@touch $(VENV)/.installed

$(LOWEST)/.installed: pyproject.toml $(VENV)/bin/python
	$(RUN)/python -m venv $(LOWEST) 2>/dev/null \
		|| ($(RUN)/python -m venv --clear --without-pip $(LOWEST) && $(PYTHON) -m pip --python $(LOWEST)/bin/python install --quiet pip)
	$(LOWEST)/bin/python -m pip install --quiet uv
	VIRTUAL_ENV=$(abspath $(LOWEST)) $(LOWEST)/bin/uv pip install --quiet --resolution lowest-direct --editable '.[adk]'
	VIRTUAL_ENV=$(abspath $(LOWEST)) $(LOWEST)/bin/uv pip install --quiet hypothesis jsonschema pytest pytest-asyncio \
		pytest-textual-snapshot pytest-xdist tabulate time-machine
	touch $@
