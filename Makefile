# Every target makes the environment it needs: `make demo` or `make test` is the only command on a fresh clone.
# Needs python3 >= 3.11. PYTHON=/path/to/python3.12 make test  uses another interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGE_INSTALLED := $(VENV)/.installed-package
INSTALLED := $(VENV)/.installed
DOCS_INSTALLED := $(VENV)/.installed-docs
# The package works on small dense tables: BLAS threads only get in each other's way.
RUN := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python
# A worker that is done takes over half of what another has left. Until then each makes the fixtures of its files alone.
WORKERS := -n auto --dist worksteal
PYTEST := -m pytest $(WORKERS)

# Where this is set, each of the hundred processes of tests and tutorials compiles all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo test test-all test-kernel test-lowest test-readers test-spark test-pgmpy package study paper paper-cgm paper-mrf paper-blocks paper-mixtures paper-gaussian compare audit nightly mutants tutorials docs site pictures screenshots lint format clean

help:
	@echo "make demo         learn a private model of the Adult census data (output in build/demo)"
	@echo "make test         every test and doctest, one worker a core        make test ARGS='-k ledger'"
	@echo "make test-all     the same with larger sizes, and every attack of the audit"
	@echo "make test-kernel  what computes, on another machine's arithmetic kernels             make test-kernel KERNEL=Nehalem"
	@echo "make test-lowest  the same as make test, on the oldest supported dependencies"
	@echo "make test-readers odd cells and neighbours in every reader, on the oldest and the newest supported versions"
	@echo "make test-spark   counting inside Spark, in local mode; needs Java 17 (PySpark goes to build/spark)"
	@echo "make test-pgmpy   what leans on pgmpy, on its newest version                         make test-pgmpy PGMPY=pgmpy==1.2.0"
	@echo "make package      source and wheel in dist, tried in an environment without extras"
	@echo "make study        the experiments of Bernstein et al. (2017) made again (output in build/study)"
	@echo "make paper-cgm    a paper against us, row by row, in build/papers; paper-mrf, -blocks, -mixtures, -gaussian   make paper PAPER=cgm QUICK=1"
	@echo "make compare      learn beside other packages on real tables (hours; goes on where it stopped)   make compare ARGS=--full"
	@echo "make docs         the documentation site, with executed tutorials, in build/site; make site  is the site alone"
	@echo "make pictures     pictures of the benchmarks from benchmarks/results, in docs/pictures, and the README's"
	@echo "make screenshots  pictures of its pages by headless Chromium, in build/screenshots"
	@echo "make audit        every guarantee attacked, broken copies caught (under 30 minutes; benchmarks/results/audits.md)"
	@echo "make nightly      fits replayed on tens of thousands of neighbouring datasets (make nightly ARGS='--pairs 50')"
	@echo "make mutants      lines of the boundary broken one by one, each noticed by the tests of its module"
	@echo "make lint         ruff check, ruff format --check, mypy"
	@echo "make format       let ruff rewrite"
	@echo "make clean        remove the environment and everything built"

install: $(INSTALLED)

# What using the package and drawing takes, and no tools of ours: a third of what tests take. The stamp is newer than what
# decides its contents, so a second run installs nothing.
$(PACKAGE_INSTALLED): pyproject.toml constraints.txt pgmpy_dp/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pgmpy_dp needs python >= 3.11, got " + sys.version)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[plot]'
	@touch $@

$(INSTALLED): $(PACKAGE_INSTALLED)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[test]'
	@touch $@

# Site tools and what tutorials need, on top: `make test` does without them.
$(DOCS_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs,plot,duckdb]'
	@touch $@

demo: $(PACKAGE_INSTALLED)
	$(RUN) tutorials/01_first_private_network.py
	@echo "Open build/demo/report.html"

test: $(INSTALLED)
	$(RUN) $(PYTEST) $(ARGS)

# Larger sizes too: all attacks of the audit, long runs of samplers.
test-all: $(INSTALLED)
	HYPOTHESIS_PROFILE=all $(RUN) $(PYTEST) -m 'slow or not slow' $(ARGS)

# OpenBLAS, NumPy and torch round in another order on another processor. tests/kernels.py picks a kernel that is not this
# machine's, KERNEL= another one (Nehalem, Haswell, Zen, SkylakeX), and checks that it is in use. By default it runs what rests
# on arithmetic: solvers, fits, bounds and the learners' numbers; WHAT="pgmpy_dp tests" is everything.
SUBJECTS := $(patsubst pgmpy_dp/%/__init__.py,%,$(shell grep -l "^ESTIMATORS" pgmpy_dp/*/__init__.py))
WHAT := tests/models tests/inference tests/learning tests/theory pgmpy_dp/models pgmpy_dp/inference pgmpy_dp/learning pgmpy_dp/theory \
	pgmpy_dp/private/noise pgmpy_dp/private/mathematics $(addprefix tests/,$(SUBJECTS)) $(addprefix pgmpy_dp/,$(SUBJECTS))
# Not what adds whole numbers: statistics, their proofs and noise, and the estimators' conduct. Nor the words of answers.
LESS := $(addprefix --ignore-glob=,'*/operators/*' '*/test_private_[!ln]*' '*/test_graph*' '*/test_sign_sampling*' '*/test_block_operators*' \
	'*/test_feature_m*' '*/test_parities*' '*/test_field_base*' '*/test_linked_replay*' '*/test_*_cli*' \
	'*/test_unit_rows*' '*/test_publish_if*' '*/test_answer.py')
test-kernel: $(INSTALLED)
	$(RUN) tests/kernels.py $(if $(KERNEL),--kernel $(KERNEL)) $(WORKERS) $(if $(filter file,$(origin WHAT)),$(LESS)) $(WHAT) $(ARGS)

# A second environment with the lower bounds of pyproject.toml.
test-lowest:
	@test -x build/lowest/bin/python || $(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet -c constraints-lowest.txt -e '.[test]'
	OMP_NUM_THREADS=1 build/lowest/bin/python $(PYTEST) $(ARGS)

# What a cell means must not depend on the version of a reader: pandas, polars, pyarrow and DuckDB, at both ends.
READERS := tests/private/test_reading_odd_cells.py tests/private/test_units.py tests/auditing/test_replay_readers.py
test-readers: $(INSTALLED)
	$(RUN) $(PYTEST) -m 'slow or not slow' $(READERS)
	@$(MAKE) --no-print-directory test-lowest ARGS="-m 'slow or not slow' $(READERS)"

# Spark is 400 MB and needs Java. It lies beside the environment, not in it: what else it takes is there.
test-spark: $(INSTALLED)
	@command -v java > /dev/null || { echo "make test-spark needs Java 17 or newer on the PATH (java was not found)"; exit 1; }
	@test -d build/spark/pyspark || $(BIN)/python -m pip install --quiet -c constraints.txt --target build/spark 'pyspark>=4.0'
	PYTHONPATH=build/spark:. $(RUN) -m pytest -v tests/private/test_spark_source.py $(ARGS)

# The newest pgmpy, pre-releases too, beside the environment: PGMPY=pgmpy==1.2.0, or an address of its repository. What breaks
# goes to docs/pgmpy.md, and the upper bound in pyproject.toml stays until nothing does.
PGMPY ?= pgmpy
PGMPY_TESTS := tests/test_pgmpy_contract.py tests/learning/test_in_place.py tests/models tests/inference tests/test_metrics.py tests/test_plotting.py
test-pgmpy: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --pre --upgrade --no-deps --target build/pgmpy '$(PGMPY)'
	PYTHONPATH=build/pgmpy:. $(RUN) $(PYTEST) $(PGMPY_TESTS) $(ARGS)

# As a user gets it. The wheel is built from the source distribution, and tried where nothing else is installed.
package: $(INSTALLED)
	rm -rf dist build/package
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/package
	build/package/bin/python -m pip install --quiet dist/*.whl
	build/package/bin/python tests/packaging/check_package.py dist

study: $(INSTALLED)
	$(BIN)/python -m benchmarks.study

# QUICK=1 takes smaller settings: seconds to half a minute of processor time each.
paper: $(INSTALLED)
	$(RUN) -m benchmarks.paper $(PAPER) $(if $(QUICK),--quick)

paper-cgm: PAPER := cgm
paper-cgm: paper

paper-mrf: PAPER := mrf
paper-mrf: paper

paper-blocks: PAPER := blocks
paper-blocks: paper

paper-mixtures: PAPER := mixtures
paper-mixtures: paper

paper-gaussian: PAPER := gaussian
paper-gaussian: paper

# Other packages get environments of their own in build/peers. Two that no index has are found by PRIVATE_PGM and DPSYNTH,
# folders with their source; PYTHON_NEW is a Python 3.12 for the second. What is missing is left out, and listed.
compare: $(INSTALLED)
	$(RUN) -m benchmarks.compare $(ARGS)

# Tutorials are scripts in jupytext's percent format. Each runs from the root of the repository, in a kernel of its own, two
# at a time, and again only when it or the package has changed. Each says how long it took: two minutes is too long to read.
# Where the script has changed, or with PAGES=1, its page in tutorials/pages is written: commit that with the script.
NOTEBOOKS := $(patsubst tutorials/%.py,build/tutorials/%.ipynb,$(wildcard tutorials/[0-9]*.py))
PACKAGE := $(shell find pgmpy_dp -name '*.py')

tutorials: $(DOCS_INSTALLED)
	@test -z "$(NOTEBOOKS)" || $(MAKE) --no-print-directory -j2 VENV=$(VENV) $(NOTEBOOKS)

build/tutorials/%.ipynb: tutorials/%.py $(PACKAGE)
	@PYTHONPATH=$(CURDIR) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/_ext/run_tutorial.py $< $@ $(if $(PAGES),always)

# Every warning is an error, a link that leads nowhere too.
docs: tutorials site

site: $(DOCS_INSTALLED)
	$(RUN) -m sphinx --quiet --jobs auto --fail-on-warning --keep-going --doctree-dir build/doctrees docs build/site

# Kept in the repository, where pages show them too; to be made again when results change.
pictures: $(DOCS_INSTALLED)
	$(RUN) docs/pictures.py
	$(RUN) docs/first_screen.py

screenshots: $(DOCS_INSTALLED)
	$(BIN)/python docs/_ext/screenshots.py build/site build/screenshots

# Tens of thousands of neighbours (620 cases), other ones each night: the day is the seed of neighbours and invented answers. Then
# slow tests, odd cells and tables of all kinds in every reader, which branches all that took, and broken lines.
nightly: $(INSTALLED)
	$(RUN) -m benchmarks.replays --pairs 100 --seed $$(date +%Y%m%d) $(ARGS)
	HYPOTHESIS_PROFILE=all $(RUN) $(PYTEST) -m slow
	HYPOTHESIS_PROFILE=thorough $(RUN) $(PYTEST) -m 'slow or not slow' tests/auditing/test_replay_readers.py
	@$(MAKE) --no-print-directory test-readers VENV=$(VENV)
	@mkdir -p build
	$(RUN) -m benchmarks.replays --coverage build/replay-coverage.md
	$(MAKE) --no-print-directory mutants VENV=$(VENV)

mutants: $(INSTALLED)
	$(RUN) -m benchmarks.source_mutants $(if $(ONLY),--only '$(ONLY)')

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
