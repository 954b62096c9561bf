# `make demo` and `make test` need Python 3.11 or newer, make, pip and a package index. Everything is installed into
# .venv. For another Python: make PYTHON=/path/to/python3.12 test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
DEV := $(VENV)/installed-dev

# uv is much faster than pip, but does not read pip's settings: pass on its index and certificates.
export UV_SYSTEM_CERTS ?= true
PIP_INDEX = $${PIP_INDEX_URL:-$$($(BIN)/pip config get global.index-url 2>/dev/null)}
UV = UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$(PIP_INDEX)}" $(BIN)/uv
INSTALL = $(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt
# Each worker starts with a part of its own, and takes from the other's when that is done.
PYTEST = pytest -n 2 --dist worksteal

# Containers often forbid Python to keep what it compiled: then each of the many processes of the tests compiles all that
# it imports.
unexport PYTHONDONTWRITEBYTECODE

EXTRAS = documents dense hub ray serve tracking benchmark

.PHONY: help demo test test-slow test-dspy mutants lint format docs pyserini $(EXTRAS) constraints clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(INSTALLED) ## index the sample corpus and answer multi-hop questions
	@$(BIN)/polyhop demo

test: lint ## style, types and the test suite
	$(BIN)/$(PYTEST)

test-slow: $(DEV) ## the slow tests: benchmarks, repeated kills, fuzzing
	$(BIN)/$(PYTEST) -m slow

test-dspy: $(DEV) ## core tests with another version of DSPy: make test-dspy DSPY=3.4.0
	@$(UV) venv --quiet --clear --python $(BIN)/python $(VENV)/dspy
	@sed '/^dspy==/d' constraints.txt > $(VENV)/constraints.txt
	@$(UV) pip install --quiet --python $(VENV)/dspy/bin/python --overrides overrides.txt \
		--constraint $(VENV)/constraints.txt 'dspy==$(DSPY)' --editable '.[dev]'
	$(VENV)/dspy/bin/$(PYTEST) -q tests/signatures tests/programs tests/engines/test_lexical.py

mutants: $(DEV) ## change functions, one at a time, and see whether the tests notice (long)
	$(BIN)/python tests/mutants/run.py

lint: $(DEV) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV) ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV) ## build the documentation into build/docs
	@$(INSTALL) --overrides overrides.txt --editable '.[dev,docs]'
	$(BIN)/sphinx-build --quiet --fail-on-warning docs build/docs

documents: ## add what PDF, Word and reStructuredText files need
dense: ## add dense retrieval: sentence-transformers with PyTorch (UV_TORCH_BACKEND=cpu, cu128, ... chooses its build)
hub: ## add downloads: datasets of the Hugging Face hub, prebuilt indexes of Pyserini
ray: ## add worker processes, on this machine or on a cluster
serve: ## add what `polyhop serve` needs
tracking: ## add the MLflow client and Optuna Dashboard
benchmark: ## add the systems that the benchmark compares

# What an extra needs of what overrides.txt leaves out.
NEEDS_dense = torch transformers hf-xet
NEEDS_hub = datasets pandas hf-xet
NEEDS_serve = fastapi uvicorn
NEEDS_tracking = fastapi alembic sqlalchemy

leave_out_but = sed -e '' $(foreach name,$(1),-e '/^$(name) /d') overrides.txt > $(VENV)/overrides.txt

$(EXTRAS): $(INSTALLED)
	@$(call leave_out_but,$(NEEDS_$@))
	@# PyTorch's own index, which UV_TORCH_BACKEND asks, may be out of reach where the package index is not.
	@$(INSTALL) --overrides $(VENV)/overrides.txt --editable '.[$@]' 2> $(VENV)/$@.log || { \
		[ -n "$$UV_TORCH_BACKEND" ] && env -u UV_TORCH_BACKEND $(INSTALL) --overrides $(VENV)/overrides.txt --editable '.[$@]' \
		&& echo "make $@: PyTorch for $$UV_TORCH_BACKEND cannot be fetched; the package index's build is installed"; } \
		|| { grep -v '^  *$$' $(VENV)/$@.log | tail -n 5; exit 1; }

pyserini: $(INSTALLED) ## add all of Pyserini, such as LuceneSearcher, with a CPU build of PyTorch
	@# An installed PyTorch is kept. Where pip finds wheels in a folder, as without a network, uv looks there, too.
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(INSTALL) 'torch==2.13.*' \
		$(if $(PIP_FIND_LINKS),--find-links "$(PIP_FIND_LINKS)",--torch-backend $${UV_TORCH_BACKEND:-cpu})
	@$(INSTALL) --editable .

constraints: $(DEV) ## pin the newest versions that pyproject.toml allows; test them, then commit
	@$(call leave_out_but,$(NEEDS_serve) $(NEEDS_hub) $(NEEDS_tracking) boto3)
	$(UV) pip compile pyproject.toml --all-extras --overrides $(VENV)/overrides.txt --python-version 3.11 \
		--no-header --no-annotate --upgrade --output-file constraints.txt

clean: ## remove the environment and all caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# Stamps are written last, so that an interrupted installation starts again.
$(INSTALLED): pyproject.toml constraints.txt overrides.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "polyhop needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name another one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Installing into $(VENV) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(INSTALL) --overrides overrides.txt --editable .
	@touch $@

$(DEV): $(INSTALLED)
	@$(call leave_out_but,$(NEEDS_serve) $(NEEDS_hub))
	@$(INSTALL) --overrides $(VENV)/overrides.txt --editable '.[dev,hub,serve]'
	@# mypy finds packages by folder name: this link is called polyhop, whatever the checkout is called.
	@mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/polyhop
	@touch $@
