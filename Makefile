# Everything a contributor runs. Each target makes its own environment first; a second run finds it ready.
#   make setup   .venv with the package, its tests' needs and torch; leaves .venv/bin/skyline-lsp
#   make demo    the main job, shown in this terminal
#   make test    the tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-scripts lint types bench vsix test-editors test-vscode test-panel test-frameworks panel clean

help:
	@sed -n 's/^# *\(make .*\)/\1/p' Makefile
	@echo "make lint | types | bench | test-scripts | test-editors | test-vscode | test-panel | test-frameworks | panel | clean"

setup: $(STAMP)

# The stamp is written last, so an interrupted installation is taken up again.
$(STAMP): pyproject.toml constraints-dev.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt -e '.[dev]'
	@touch $@

# Made once: another Python over an existing environment would mix the two.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "Python 3.10 or later is needed; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' \
		|| { echo "This Python cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

demo: setup
	$(BIN)/python scripts/demo.py

test: setup
	$(BIN)/python -m pytest -m 'not editors and not browser and not frameworks'

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

bench: setup
	@for script in $(sort $(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

vsix: setup
	scripts/editors/vsix.sh

# Neovim and Emacs are installed where they are missing; CI_FULL=1 adds VS Code, 800 MB and some minutes more.
test-editors: setup
	scripts/editors/test.sh neovim eglot $(if $(CI_FULL),vscode)

test-vscode: setup
	scripts/editors/test.sh vscode

# The system's Chromium is driven: on Debian, apt install chromium; or name one in CHROMIUM.
test-panel: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt -e '.[browser]'
	$(BIN)/python -m pytest -m browser

# Every script of the corpus: as Python runs it, and through the worker.
test-scripts: setup
	SKYLINE_ALL_SCRIPTS=1 $(BIN)/python -m pytest tests/source/test_scripts_run.py tests/worker/test_corpus.py

# An environment of their own, that uses the torch of the first one: frameworks pin what they need.
FRAMEWORKS := .venv-frameworks
FRAMEWORKS_STAMP := $(FRAMEWORKS)/.installed

$(FRAMEWORKS_STAMP): $(STAMP) tests/frameworks/requirements.txt
	$(BIN)/python -m venv $(FRAMEWORKS)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> "$$($(FRAMEWORKS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/first.pth"
	$(FRAMEWORKS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt \
		-r tests/frameworks/requirements.txt
	@touch $@

test-frameworks: $(FRAMEWORKS_STAMP)
	$(BIN)/python -m pytest -m frameworks

# Needs Node: the panel's bundle is committed, so that nobody else does.
panel:
	cd clients/panel && npm ci --no-audit --no-fund && npm run check && npm run build

clean:
	rm -rf $(VENV) $(FRAMEWORKS) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
