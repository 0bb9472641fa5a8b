# Escala's verbs. Everything lives in .venv; `make setup` is done once, and again when the dependencies change.
#
#   make demo        the main job end to end on a built-in log (sets everything up first)
#   make test        the whole suite        make test-fast   a smoke subset, within a minute
#   make check       lint, types, floors    make fuzz        random small worlds against the slow, obvious simulator; damaged files
#   make test-bounds part of the suite with every array access of the compiled code checked
#   make test-slurm  the tests beside real Slurms of its own (five minutes), which has to be installed
#   make slurm-lab   a Slurm of eight emulated nodes on this machine, to try escala beside slurm; ended by make slurm-lab-down
#   make test-lowest  schedules with the lowest versions that the core may have
#   make test-extras  Ray, RLlib, trackers, ONNX and the hub, which make setup leaves out, in an environment of their own; with EXTRAS_AT=lowest
#                    the lowest versions of them that there may be, newest: the newest
#   make bench       the figures of docs/performance.md
#   make docs        the documentation as a site in docs/_build/html, warnings as errors
#   make wheel       a wheel that brings machine code of the usual paths: nothing is compiled when it is first used on a common processor
#   make dist        what is published: source archive and wheel, small, and installed and run in an empty environment
#   make lock        requirements.lock and requirements-extras.lock anew: what the tests run with, by version and hash

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCKED := $(VENV)/locked.txt
# Without bytecode of all that torch brings: half of what installing costs; Python writes what it imports.
INSTALL := -m pip install -qq --disable-pip-version-check --no-compile
PIP := $(BIN)/python $(INSTALL)
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 2
# Left out of the smoke subset: digests, pages, studies, solvers, and every shared log.
NOT_SMOKE := digests docs unit/report unit/studies unit/optimum unit/multi unit/workload/test_traces.py
# The compiled code, with every array access checked: worlds and inputs made for it. `make fuzz` runs the others that touch it as well.
BOUNDED ?= laws/test_slurm_*.py memory oracle unit/kernel unit/multi unit/workload/test_mutated_logs.py unit/envs/test_recurrent.py \
	unit/policies/test_parts_by_commands.py unit/prediction/test_features.py unit/prediction/test_trees.py unit/slots/test_image_filters.py unit/slots/test_slot_layers.py \
	unit/slots/test_slots_shortest.py unit/slurm/test_fair_share.py unit/slurm/test_rules.py live/test_desk.py live/test_shields.py \
	live/test_agents.py::test_slotted_agents_count_all_jobs_where_rows_are_given_anew live/test_slurm_desk.py::test_reservations_of_the_site
BOUNDED_TOO := laws golden contracts unit/envs unit/slots unit/policies unit/optimum unit/test_predictors.py \
	unit/workload/test_swf.py
WORLDS ?= 10000
OUT ?= demo-out
BROUGHT := src/escala/compile/brought
LAB ?= /tmp/escala-slurm-lab
COMMA := ,
# One thread for each numerical library: the tests and the training run side by side.
export OMP_NUM_THREADS ?= 1
# Tests start some hundred processes, each of which would translate all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: wheel dist setup demo test test-fast test-bounds test-slurm test-lowest test-extras check fuzz slurm-lab slurm-lab-down bench docs lock clean

setup: $(STAMP)

# Exactly what a lock says: torch first, whose builds for CPU and CUDA share a version and not a hash.
from_lock = $(1)/bin/python $(INSTALL) -c constraints.txt --no-deps $$(grep -o '^torch==[^ ]*' $(2)) && \
	$(1)/bin/python $(INSTALL) --require-hashes --no-deps -r $(2)

# First what requirements.lock says, where the registry has it; then what is missing.
$(STAMP): pyproject.toml constraints.txt requirements.lock
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found; install one, or name it: make setup PYTHON=/path/to/python3" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): some minutes, about 2 GB"
	rm -f $(LOCKED)
	@if { $(call from_lock,$(VENV),requirements.lock); } 2>$(VENV)/lock.log; then cp requirements.lock $(LOCKED); \
	  else echo "setup: requirements.lock cannot be installed here (why: $(VENV)/lock.log); taking what there is"; fi
	$(PIP) -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(STAMP)
	$(BIN)/escala demo --out $(OUT)

# One process more than elsewhere: the tests beside a real Slurm mostly wait for it, others for code that one of them compiles.
test: check
	$(PYTEST) -n $$(($(WORKERS) + 1)) --dist worksteal

test-fast: $(STAMP)
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "not slow and not learn and not long" $(addprefix --ignore=tests/,$(NOT_SMOKE))

test-bounds: $(STAMP)
	NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 ESCALA_CACHE_DIR=$(VENV)/bounds-cache $(PYTEST) -n $$(($(WORKERS) + 1)) --dist worksteal -m "not slow and not learn and not long" $(addprefix tests/,$(BOUNDED))
	NUMBA_BOUNDSCHECK=1 ESCALA_CACHE_DIR=$(VENV)/bounds-cache $(BIN)/python -m tests.bounded

# They mostly wait, each file beside a Slurm of its own.
test-slurm: $(STAMP)
	ESCALA_SLURM=need $(PYTEST) -m slurm -n $$(($(WORKERS) + 1)) --dist loadfile $$(grep -rlw 'mark\.slurm' tests --include=test_*.py)

test-lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python $(INSTALL) $$($(PYTHON) -m tests.lowest) pytest hypothesis
	$(VENV)-lowest/bin/python $(INSTALL) --no-deps -e .
	$(VENV)-lowest/bin/python -m pytest tests/golden tests/oracle tests/laws tests/unit/streaming

# Ray asks for a release of Gymnasium of its own choice, so it is not beside the others.
EXTRAS_AT ?= locked
APART := ray,rllib,report,share,track,optuna,onnx
BESIDE := onnxruntime pytest hypothesis
test-extras:
	test -x $(VENV)-extras/bin/python || $(PYTHON) -m venv $(VENV)-extras
	$(if $(filter locked,$(EXTRAS_AT)),$(call from_lock,$(VENV)-extras,requirements-extras.lock))
	$(VENV)-extras/bin/python $(INSTALL) -c constraints.txt $(if $(filter lowest,$(EXTRAS_AT)),$$($(PYTHON) -m tests.lowest rllib share track optuna onnx)) -e ".[$(APART)]" $(BESIDE)
	$(VENV)-extras/bin/python -m pytest tests/unit/campaigns/test_engines.py tests/unit/campaigns/test_agents_in_campaigns.py tests/cli/test_replays_on_engines.py tests/learn/test_rllib.py tests/learn/test_trials.py tests/learn/test_tracking.py tests/learn/test_onnx.py tests/cli/test_policy_verbs.py

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

fuzz: $(STAMP)
	$(BIN)/python -m tests.oracle.fuzz --worlds $(WORLDS)
	$(BIN)/python -m tests.live.fuzz --worlds $(WORLDS)
	$(BIN)/python -m tests.live.fuzz --worlds $(WORLDS) --shapes
	$(BIN)/python -m tests.live.fuzz --worlds $$(($(WORLDS) / 100)) --sites  # some seconds each
	$(PYTEST) -n $(WORKERS) -m long
	$(MAKE) test-bounds BOUNDED="$(BOUNDED) $(BOUNDED_TOO)"
	$(BIN)/python -m tests.attacks.mutations --count $(WORLDS)

slurm-lab:
	examples/slurm/lab.sh up $(LAB)

slurm-lab-down:
	examples/slurm/lab.sh down $(LAB)

bench: $(STAMP)
	$(BIN)/python -m bench

docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

LOCK = $(VENV)-lock/bin/uv pip compile -q --upgrade --config-file tests/lock.toml -c constraints.txt pyproject.toml
lock:
	test -x $(VENV)-lock/bin/uv || { $(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/python $(INSTALL) uv; }
	$(LOCK) --extra dev -o requirements.lock
	printf '%s\n' $(BESIDE) | $(LOCK) - $(addprefix --extra ,$(subst $(COMMA), ,$(APART))) -o requirements-extras.lock

# Code for one family of processors, from a cache of its own; what lies in `brought` is no part of the repository.
wheel: $(STAMP)
	rm -rf build/machine $(BROUGHT) && mkdir -p $(BROUGHT)
	NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES= ESCALA_CACHE_DIR=$(CURDIR)/build/machine $(BIN)/escala doctor --warm
	cd build/machine/compiled-numba-* && find . -name '*.machine' -exec cp --parents -t $(CURDIR)/$(BROUGHT) {} +
	$(BIN)/python -m pip wheel -q --no-deps -w dist .
	rm -rf build/machine $(BROUGHT)

# The wheel is built from the source archive, so that this is whole too.
dist:
	rm -rf build/dist build/small.swf build/env && $(PYTHON) -m venv build/env
	build/env/bin/python $(INSTALL) build
	build/env/bin/python -m build --outdir build/dist . >/dev/null
	$(PYTHON) -m tests.release build/dist
	build/env/bin/python $(INSTALL) -c constraints.txt build/dist/*.whl
	cd build && env/bin/escala workload generate lublin jobs=100 cores=32 --out small.swf
	cd build && env/bin/escala simulate small.swf --platform 32x1 --scheduler easy
	@ls -l build/dist

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
