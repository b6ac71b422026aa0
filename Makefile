# Every target makes the environment it needs: `make demo` or `make test` is the only command on a fresh clone.
# Needs python3 >= 3.11. PYTHON=/path/to/python3.12 make test  uses another interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# The package works on small dense tables: BLAS threads only get in each other's way.
RUN := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python

.PHONY: help install demo test test-lowest study audit lint format clean

help:
	@echo "make demo         learn a private model of the Adult census data (output in build/demo)"
	@echo "make test         every test and doctest, one worker a core        make test ARGS='-k ledger'"
	@echo "make test-lowest  the same on the oldest supported dependencies"
	@echo "make study        the experiments of Bernstein et al. (2017) made again (output in build/study)"
	@echo "make audit        every guarantee attacked, broken copies caught (under 30 minutes; benchmarks/results/audits.md)"
	@echo "make lint         ruff check, ruff format --check, mypy"
	@echo "make format       let ruff rewrite"
	@echo "make clean        remove the environment and everything built"

install: $(INSTALLED)

# The stamp is newer than what decides its contents, so a second run installs nothing.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pgmpy_dp needs python >= 3.11, got " + sys.version)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[test]'
	@touch $@

demo: $(INSTALLED)
	$(RUN) tutorials/quickstart.py

test: $(INSTALLED)
	$(RUN) -m pytest -n auto $(ARGS)

# A second environment with the lower bounds of pyproject.toml.
test-lowest:
	@test -x build/lowest/bin/python || $(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet -c constraints-lowest.txt -e '.[test]'
	OMP_NUM_THREADS=1 build/lowest/bin/python -m pytest -n auto $(ARGS)

study: $(INSTALLED)
	$(BIN)/python -m benchmarks.study

# Goes on where it stopped, if it was: results are kept one by one in build/audits.
audit: $(INSTALLED)
	$(RUN) -m benchmarks.audits --cost full --out build/audits --resume $(ARGS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
