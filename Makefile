# Each target works alone on a machine that has Python 3.11 or later, pip and make.
# Where pip would fetch a build of torch for graphics cards and you have none:
#   PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make demo

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
PYTEST_ARGS ?=
SECONDS ?= 600
TARGETS ?=

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --constraint constraints.txt
RUN_STAMP := $(VENV)/run.stamp
DEV_STAMP := $(VENV)/dev.stamp

.PHONY: help demo test torture lint format docs clean

help:
	@echo "make demo    train on the corpus that ships with the package and print the scores of each stage"
	@echo "make test    all tests, with the examples in docstrings and in the documentation"
	@echo "make torture kill, damage and crowd every command, and print what it withstands (half an hour)"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff rewrite the files"
	@echo "make fuzz    throw changed files at every reader, SECONDS=600 at each; faults are kept in fuzz/"
	@echo "make docs    build the documentation site into site/"
	@echo "make clean   remove the environment and everything built"

# torch goes first and alone: a later install then keeps it instead of choosing another build.
$(RUN_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) torch
	$(INSTALL) --editable '.[bert]'
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	$(INSTALL) --editable '.[bert,spacy,dev,docs]'
	@touch $@

demo: $(RUN_STAMP)
	$(BIN)/tagweave demo

test: $(DEV_STAMP)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile $(PYTEST_ARGS)

torture: $(DEV_STAMP)
	$(BIN)/python benchmarks/torture.py

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV_STAMP)
	$(BIN)/mkdocs build --strict

fuzz: $(DEV_STAMP)
	$(INSTALL) --requirement tools/fuzz.txt
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS) $(TARGETS)

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
