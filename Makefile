# `make demo` and `make test` need Python 3.11 or newer, make, pip and a package index; nothing else. All that they
# install stays in .venv. Another Python: make PYTHON=/path/to/python3.12 test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

# uv installs in seconds what takes pip minutes, but does not read pip's settings: hand on the index and the certificates.
export UV_SYSTEM_CERTS ?= true
PIP_INDEX = $${PIP_INDEX_URL:-$$($(BIN)/pip config get global.index-url 2>/dev/null)}
UV_INSTALL = UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$(PIP_INDEX)}" $(BIN)/uv pip install --quiet --python $(BIN)/python

.PHONY: help demo test lint format dense tracking constraints clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(INSTALLED) ## index the sample corpus and answer multi-hop questions over it
	@$(BIN)/polyhop demo

test: lint ## lint, types and the whole test suite
	$(BIN)/pytest -n 2

lint: $(INSTALLED) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## bring the code into the shape that lint asks for
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

dense: $(INSTALLED) ## add what dense retrieval needs: sentence-transformers with PyTorch
	@# UV_TORCH_BACKEND=cpu (or cu128, ...) chooses the build of PyTorch; one that is there already is kept.
	@sed '/^torch /d; /^transformers /d' overrides.txt > $(VENV)/overrides.txt
	@$(UV_INSTALL) --overrides $(VENV)/overrides.txt --constraint constraints.txt --editable '.[dev,dense]'

tracking: $(INSTALLED) ## add MLflow's client and Optuna Dashboard
	@sed '/^fastapi /d' overrides.txt > $(VENV)/overrides.txt
	@$(UV_INSTALL) --overrides $(VENV)/overrides.txt --constraint constraints.txt --editable '.[dev,tracking]'

constraints: $(INSTALLED) ## pin the newest versions that pyproject.toml allows; test them, then commit
	$(BIN)/uv pip compile pyproject.toml --all-extras --overrides overrides.txt --python-version 3.11 \
		--no-header --no-annotate --upgrade --output-file constraints.txt

clean: ## remove the environment and all caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Stamped last, so that an interrupted installation starts again.
$(INSTALLED): pyproject.toml constraints.txt overrides.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "polyhop needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name another one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Installing into $(VENV) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(UV_INSTALL) --overrides overrides.txt --constraint constraints.txt --editable '.[dev]'
	@# mypy finds packages by folder name: here the checkout is called polyhop.
	@mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/polyhop
	@touch $@
