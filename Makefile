# `make demo` and `make test` set up a virtual environment here and then do their job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test check test-slow bench clean

demo: $(INSTALLED)
	$(BIN)/discrax demo

# A file's tests stay with one worker: they share their programs.
test: check
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

# Three workers on two cores: some tests wait for programs that they kill.
# DISCRAX_TESTS_REPEATS=full repeats kills, half-written files and hostile calls several times as often.
test-slow: $(INSTALLED)
	$(BIN)/pytest -n 3 --dist worksteal -m slow

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/ty check --quiet

bench: $(INSTALLED)
	$(BIN)/pip install --quiet --editable ".[peers]"
	$(BIN)/python benchmarks/step_cost.py

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $(INSTALLED)

clean:
	rm -rf $(VENV) build dist .pytest_cache
