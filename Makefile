# `make demo` and `make test` set up a virtual environment here and then do their job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test check test-slow wheel bench docs clean

demo: $(INSTALLED)
	$(BIN)/discrax demo

# A file's tests stay with one worker: they share their programs.
test: check
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not docs"

# Three workers on two cores: some tests wait for programs that they kill.
# DISCRAX_TESTS_REPEATS=full repeats kills, half-written files and hostile calls several times as often.
# TESTS="tests/invariance" runs the slow tests of some folders.
test-slow: $(INSTALLED)
	DISCRAX_TESTS_TYPES=none $(BIN)/pytest -n 3 --dist worksteal -m slow $(TESTS)

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/ty check --quiet

# The wheel in clean environments: without extras, with each alone, with all. EXTRAS="core zarr" tries some.
wheel: $(INSTALLED)
	$(BIN)/python tools/try_wheel.py $(EXTRAS)

bench: $(INSTALLED)
	$(BIN)/pip install --quiet --editable ".[peers]"
	$(BIN)/python benchmarks/step_cost.py

# Runs the examples of all pages and the tutorials, and writes the site into site/; an example that raises, a broken
# link, anchor or image ends it.
docs: $(INSTALLED)
	$(BIN)/pytest -n 2 --dist worksteal -m docs tests/docs/test_examples.py
	rm -rf .cache/mkdocs-jupyter  # what tutorials printed before the library changed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $(INSTALLED)

clean:
	rm -rf $(VENV) build dist site .cache .pytest_cache
