# The commands of this project; `make` alone lists them. Works with GNU make 3.81 and later.
.DEFAULT_GOAL := help
.PHONY: help env demo reports test test-all measure test-newest test-browser notebooks docs docs-quick lint format bench scorecards certify clean

BIN := .venv/bin
READY := .venv/.ready
# Candidates in the order tried; `make env PYTHON=/some/python` puts one in front. Each is run, as a pyenv shim may exist and fail.
PYTHONS = $(PYTHON) python3 python3.13 python3.12 python3.14
SUPPORTED := import sys; sys.exit(not (3, 12) <= sys.version_info[:2] <= (3, 14))

# Compiled models are kept between runs: the first run of a machine costs a minute, the next ones seconds.
# The generated sources go there too; PyTensor would leave one file a function in /tmp for ever.
ifeq (,$(findstring base_compiledir,$(PYTENSOR_FLAGS)))
comma := ,
CACHE := $(CURDIR)/.cache/pytensor
override PYTENSOR_FLAGS := $(if $(PYTENSOR_FLAGS),$(PYTENSOR_FLAGS)$(comma))base_compiledir=$(CACHE),generated_src_dir=$(CACHE)/src
export PYTENSOR_FLAGS
endif

# Python keeps the bytecode of tests and library, else each worker and each command that is tested compiles them again.
unexport PYTHONDONTWRITEBYTECODE

# The notebooks and the site need packages of the extra `docs`, which nothing else does.
TOOLS := .venv/.docs
# The samplers of other libraries, which only slow tests run.
SAMPLERS := .venv/.samplers

# A file of tests stays with one worker, so that what it fits is fitted once.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile

# A worker a core, mostly on small matrices: there a BLAS with threads of its own takes ten times as long, waiting.
test test-all measure: export OPENBLAS_NUM_THREADS := 1

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

env: $(READY) ## Make .venv with the pinned versions (with uv where it is installed, else venv and pip)

$(READY): pyproject.toml constraints.txt
	@if command -v uv >/dev/null 2>&1; then \
	  { $(BIN)/python -c "$(SUPPORTED)"; } 2>/dev/null \
	    || uv venv --quiet --clear $(if $(PYTHON),--python "$(PYTHON)") .venv \
	    || { echo "Taking another Python, then"; uv venv --quiet --clear --python '>=3.12,<3.15' .venv; } || exit 1; \
	  install="uv pip install --python $(BIN)/python"; \
	else \
	  if ! { $(BIN)/python -c "$(SUPPORTED)" && $(BIN)/python -m pip --version; } >/dev/null 2>&1; then \
	    for python in $(PYTHONS); do \
	      if "$$python" -c "$(SUPPORTED)" 2>/dev/null; then found=$$python; break; fi; \
	      tried="$$tried  $$python: $$("$$python" --version 2>/dev/null || echo not found)\n"; \
	    done; \
	    if [ -z "$$found" ]; then \
	      printf "bayeszoo needs Python 3.12, 3.13 or 3.14. Found here:\n$$tried" >&2; \
	      echo "Install one (pyenv install 3.13, or your system's packages), or name it: make env PYTHON=/path/to/python3.13" >&2; \
	      exit 1; \
	    fi; \
	    "$$found" -m venv --clear .venv || exit 1; \
	  fi; \
	  install="$(BIN)/python -m pip install --disable-pip-version-check"; \
	fi; \
	echo "Installing the pinned packages into .venv with $$($(BIN)/python --version): 1.3 GB, a minute or more"; \
	$$install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY) ## Fit and compare every method on 18th-century births; writes demo/
	@mkdir -p demo
	$(BIN)/bayeszoo fit beta_bernoulli --method nuts --seed 1 -o demo/paris_births.nc --overwrite
	$(BIN)/bayeszoo compare beta_bernoulli --methods exact,map,laplace,advi,nuts --seed 1 > demo/comparison.txt; \
	  status=$$?; cat demo/comparison.txt; exit $$status
	@echo "Wrote demo/paris_births.nc (the draws, for ArviZ) and demo/comparison.txt"

reports: $(READY) ## A page about every model, fitted to its own data; writes demo/reports/
	@mkdir -p demo/reports
	$(BIN)/bayeszoo report --all -o demo/reports --overwrite
	@echo "Wrote demo/reports/*.html"

test: $(READY) ## The tests that take seconds each
	$(BIN)/pytest $(PARALLEL) -m "not slow and not browser"

measure: $(READY) ## Write the list of the cases that `make test` leaves out, by their CPU seconds
	$(BIN)/pytest $(PARALLEL) --measure -m "not slow and not browser"

test-all: $(TOOLS) $(SAMPLERS) ## The slow ones too
	$(BIN)/pytest $(PARALLEL) -m "not browser"

NEWEST := .cache/newest
UNBOUND := import re, tomllib; needs = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  print(*(re.sub(r",?<=?[0-9.]+", "", need) + mark + where for need, mark, where in (line.partition(";") for line in \
  [*needs["dependencies"], *needs["optional-dependencies"]["dev"]])), sep="\n")

test-newest: export OPENBLAS_NUM_THREADS := 1
test-newest: $(READY) ## The quick tests on the newest releases of all libraries, without constraints.txt and upper bounds
	rm -rf $(NEWEST)
	$(BIN)/python -m venv $(NEWEST)
	$(BIN)/python -c '$(UNBOUND)' > $(NEWEST)/needs.txt
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check -r $(NEWEST)/needs.txt
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	$(NEWEST)/bin/python -m pip list | grep -Ei '^(pymc|pytensor|numba|llvmlite|nutpie|arviz) '
	PYTENSOR_FLAGS=base_compiledir=$(CURDIR)/$(NEWEST)/pytensor,generated_src_dir=$(CURDIR)/$(NEWEST)/src \
	  $(NEWEST)/bin/pytest $(PARALLEL) -m "not slow and not browser"

test-browser: $(READY) ## The reports in a real browser; needs Chromium and its driver (Debian: chromium chromium-driver)
	$(BIN)/pytest -m browser

lint: $(READY) ## Style, formatting, types and storeys
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy bayeszoo models
	$(BIN)/lint-imports --cache-dir .cache/import_linter

format: $(READY) ## Put the code in the house format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

NOTEBOOKS := $(patsubst notebooks/%.py,build/notebooks/%.ipynb,$(wildcard notebooks/*.py))

$(TOOLS): EXTRA := docs
$(SAMPLERS): EXTRA := samplers
$(TOOLS) $(SAMPLERS): $(READY)
	@if command -v uv >/dev/null 2>&1; then install="uv pip install --python $(BIN)/python"; \
	else install="$(BIN)/python -m pip install --disable-pip-version-check"; fi; \
	echo "Installing the packages of the extra $(EXTRA) into .venv"; \
	$$install --quiet -c constraints.txt -e '.[dev,$(EXTRA)]'
	@touch $@

notebooks: $(NOTEBOOKS) ## Run the notebooks; writes build/notebooks/

build/notebooks/%.ipynb: notebooks/%.py $(TOOLS)
	@echo "Running $<"
	@$(BIN)/python docs/execute.py $< $@

docs: $(NOTEBOOKS) ## Build the site, with the notebooks; writes build/site/
	$(BIN)/python docs/build.py
	@echo "Wrote build/site/index.html"

docs-quick: $(TOOLS) ## The same site with notebooks that were not run and without pictures: nothing is fitted
	$(BIN)/python docs/build.py --quick build/quick
	@echo "Wrote build/quick/site/index.html"

bench: $(READY) ## The peers side by side
	$(BIN)/python benchmarks/run.py
	$(BIN)/python -m benchmarks.mixtures
	$(BIN)/python benchmarks/nuts.py
	$(BIN)/python -m benchmarks.stan
	$(BIN)/python benchmarks/cold.py

certify: $(READY) ## Calibration of every sampler, seeded bugs, fits again, bad targets: hours, resumed where interrupted
	$(BIN)/python -m benchmarks.certify

scorecards: $(READY) ## Check every model and store what was found
	$(BIN)/python -m bayeszoo.cli.verbs.check

clean: ## Remove what was generated, except .venv
	rm -rf .cache build dist demo *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find bayeszoo models tests -name __pycache__ -type d -prune -exec rm -rf {} +
