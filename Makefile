# Everything runs in .venv, which is made on first use.  PYTHON names the interpreter to make it with.
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1

.PHONY: book test smoke lint clean

book: .venv/installed
	$(BIN)/paperbook build

test: .venv/installed
	tools/ensure-browser
	$(MAKE) lint
	$(BIN)/pytest tests --ignore tests/book --numprocesses 2
	$(BIN)/pytest notebooks --ignore-glob="*.failed.ipynb" --nbval-lax --nbval-cell-timeout 900 --numprocesses 2 --dist loadfile
	$(BIN)/pytest tests/book

smoke: .venv/installed
	$(BIN)/paperbook run $(basename $(notdir $(wildcard notebooks/*.yaml))) --profile smoke

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

clean:
	rm -rf _build runs .pytest_cache book/_static/mathjax

.venv/installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@
