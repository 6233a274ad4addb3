PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
CORE := .venv-core
PEERS := .venv-peers

.PHONY: setup demo test test-quick test-statistics test-faults test-rounding check check-code check-wheel release-check bench bench-forecasts bench-peers bench-peers-quick docs clean

# here and below without bytecode, which takes as long as the installation: it is written for what is imported
setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --no-compile --quiet --disable-pip-version-check -c constraints.txt -e '.[neural,boosting,scale,service,postgresql,dev,docs]'
	touch $(STAMP)

# the package without its extras, in an environment of its own: 0.7 GB, where `make setup` takes 2.3 GB
demo: $(CORE)/.ready
	$(CORE)/bin/evenhand demo

$(CORE)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(CORE)
	$(CORE)/bin/pip install --no-compile --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

# statistical tests take one in 24 of their simulated data sets here; bytecode is kept, since tests start many processes
test: $(STAMP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

# the first case of each quick test, in under two minutes on two cores: while you work
test-quick: $(STAMP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal --quick tests

# statistical tests alone, with all their data sets: before a release, and before a larger change lands
test-statistics: $(STAMP)
	EVENHAND_STATISTICS=1 OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m statistics tests

# faults planted in a copy of the package, each of which a test of `make test` must detect
test-faults: $(STAMP)
	$(BIN)/python tools/plant_faults.py

# as on another processor: results of exp, log, gammaln and their like a unit in the last place off, other kernels of sums
test-rounding: $(STAMP)
	PYTHONPATH=$(CURDIR)/tools/another_libm OPENBLAS_CORETYPE=Prescott ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE \
		PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

check: check-code check-wheel

check-code: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

check-wheel: $(STAMP)
	$(BIN)/python tools/check_wheel.py

# builds the sdist and the wheel into dist/, checks, installs and uses both, and runs tests from the sdist
release-check: $(STAMP)
	$(BIN)/python tools/check_release.py

bench: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[neural,scale,bench]'
	$(BIN)/python benchmarks/record.py worst_groups scan audit_cost audit_scale parts_scale predict_cost \
		one_person certificates service_load censored_times

# deterministic forecasts beside NGBoost, CatBoost, quantile forests and split conformal prediction, in an environment that
# it makes in bench-results/: hours the first time, minutes when only evenhand's forecasters are run again
bench-forecasts: $(STAMP)
	$(BIN)/python benchmarks/record.py forecasts/run

# audits, repairs and intervals beside MAPIE, crepes, fairaudit, MCGrad and others, which have an environment of their own;
# about 15 minutes on two cores, and two minutes with few tables, which does not replace the recorded page
bench-peers: $(PEERS)/.ready
	$(PEERS)/bin/python benchmarks/record.py peers/run

bench-peers-quick: $(PEERS)/.ready
	OMP_NUM_THREADS=1 $(PEERS)/bin/python benchmarks/peers/run.py --quick

# conditionalconformal needs an older NumPy than constraints.txt has
$(PEERS)/.ready: pyproject.toml constraints.txt benchmarks/peers/requirements.txt
	$(PYTHON) -m venv --clear $(PEERS)
	grep -v '^numpy==' constraints.txt > $(PEERS)/constraints.txt
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -c $(PEERS)/constraints.txt \
		-r benchmarks/peers/requirements.txt -e '.[neural,boosting]'
	touch $(PEERS)/.ready

docs: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) $(CORE) build dist docs/_build docs/auto_examples docs/reference/*/ docs/sg_execution_times.rst evenhand-demo
