# Everything a contributor types. Each target prepares its own environment on first use: with uv
# when it is there, else with venv and pip. Nothing needs to be activated or installed by hand.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
PYTHON_IN := $(VENV)/bin/python
DEV := $(VENV)/.installed-dev
ORACLE := $(VENV)/.installed-oracle
CLOUD := $(VENV)/.installed-cloud
SPARK := $(VENV)/.installed-spark
PROTO_VENV := .venv-proto
PROTO := $(PROTO_VENV)/.installed-proto
SOURCES := pyproject.toml constraints.txt

# How many test processes; `make test JOBS=8` on a larger machine.
JOBS ?= 2
PYTEST = $(PYTHON_IN) -m pytest
FAST := $(wildcard tests/unit tests/contracts tests/properties tests/architecture)
LINTED := src tests examples protos $(wildcard benchmarks)

# A version manager may put names on the path that do not run, so each candidate is tried.
PYTHON = $(shell for name in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then command -v "$$name"; break; fi; done)
UV = $(shell uv --version >/dev/null 2>&1 && command -v uv)

# $(call create,folder) and $(call install,folder,arguments): uv and pip take the same
# arguments; pip knows dependency groups from 25.1 on.
create = $(if $(PYTHON),,$(error lancetable needs Python 3.11 or newer and found none on PATH)) \
	$(if $(UV),uv venv --quiet --allow-existing --python $(PYTHON) $(1),\
	$(PYTHON) -m venv $(1) && $(1)/bin/python -m pip install --quiet --upgrade 'pip>=25.1')
install = $(if $(UV),uv pip install --quiet --python $(1)/bin/python,\
	$(1)/bin/python -m pip install --quiet) $(2)

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(DEV) ## prepare .venv; every other target does it by itself

.PHONY: demo
demo: $(SPARK) ## a pipeline from end to end on a local Spark, in about a minute
	@$(PYTHON_IN) -m examples.demo

.PHONY: test
test: $(ORACLE) $(CLOUD) $(SPARK) ## everything but the soak runs: the comparison with pylance, Spark
	$(PYTEST) -q -n $(JOBS) --dist loadgroup -m 'not soak and not servers and not releases and not fallbacks'

.PHONY: test-spark
test-spark: $(ORACLE) $(CLOUD) $(SPARK) ## the part of it that runs on a real Spark
	$(PYTEST) -q -m 'spark and not soak' tests/spark

.PHONY: test-servers
test-servers: $(ORACLE) $(CLOUD) ## the object store tests on Azurite, MinIO and versitygw; installs them by npm and go
	$(PYTEST) -q -n $(JOBS) -m 'cloud and not soak' -k 'azure or minio or versitygw' \
		tests/contracts tests/cloud

.PHONY: test-releases
test-releases: $(ORACLE) ## older releases of pylance read our tables; installs each for a moment
	$(PYTEST) -q -m releases tests/oracle

.PHONY: test-fallbacks
test-fallbacks: $(DEV) ## a part of the suite on a package without compiled kernels, and from a zip
	$(PYTEST) -q -m fallbacks tests/fallbacks

.PHONY: test-fast
test-fast: $(DEV) ## unit, contract, property and architecture tests without servers, in under a minute
	$(PYTEST) -q -n $(JOBS) -m 'not soak and not slow and not oracle and not cloud' $(FAST)

.PHONY: lint
lint: $(DEV) ## ruff, mypy and the import contracts
	$(PYTHON_IN) -m ruff check $(LINTED)
	$(PYTHON_IN) -m ruff format --check $(LINTED)
	$(PYTHON_IN) -m mypy
	$(VENV)/bin/lint-imports

.PHONY: check
check: lint test-fast ## what to run before a commit: lint, then test-fast

.PHONY: format
format: $(DEV) ## rewrite the sources in the house style
	$(PYTHON_IN) -m ruff check --fix $(LINTED)
	$(PYTHON_IN) -m ruff format $(LINTED)

.PHONY: soak
soak: $(ORACLE) $(CLOUD) $(SPARK) ## the long fuzz and race runs
	HYPOTHESIS_PROFILE=ci $(PYTEST) -n $(JOBS) -m soak

.PHONY: kernels
kernels: $(DEV) ## compile the kernels in place after a change to their C sources
	$(PYTHON_IN) hatch_build.py

# The library is replaced by a checked one for the run, and compiled anew whatever comes out.
.PHONY: sanitize
sanitize: $(DEV) ## fuzz corpus and kernel tests with every address and overflow checked
	$(PYTHON_IN) hatch_build.py --sanitize
	LD_PRELOAD="$$($${CC:-cc} -print-file-name=libasan.so) $$($${CC:-cc} -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 LANCETABLE_KERNELS=c \
	$(PYTEST) -q -n $(JOBS) -m 'not soak and not slow and not oracle' \
		tests/fuzz tests/properties tests/unit/format tests/unit/file; \
	status=$$?; $(PYTHON_IN) hatch_build.py; exit $$status

.PHONY: bench
bench: $(ORACLE) ## measure all peers in one run and write docs/benchmarks.md with its plots
	$(PYTHON_IN) -m benchmarks.run --docs

.PHONY: bench-smoke
bench-smoke: $(ORACLE) ## the same with small tables and few rounds, in about two minutes
	$(PYTHON_IN) -m benchmarks.run --smoke

.PHONY: bench-cloud
bench-cloud: $(ORACLE) $(CLOUD) ## measure on an S3 server of this machine, with and without a delay
	$(PYTHON_IN) -m benchmarks.cloud

.PHONY: bench-spark
bench-spark: $(ORACLE) $(SPARK) ## measure inside of Spark, against Parquet and pylance, and write it to docs/spark.md
	$(PYTHON_IN) -m benchmarks.spark --docs

.PHONY: docs
docs: $(ORACLE) ## write docs/compatibility.md anew
	$(PYTHON_IN) -m tests.compatibility

.PHONY: proto
proto: $(PROTO) ## generate the message classes from protos/
	$(PROTO_VENV)/bin/python protos/generate.py

.PHONY: clean
clean: ## remove the environments and everything generated by the tools
	rm -rf $(VENV) $(PROTO_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache .cache build dist
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEV): $(SOURCES)
	@echo "preparing $(VENV) (once)"
	@$(call create,$(VENV))
	@$(call install,$(VENV),--constraint constraints.txt --group dev --editable .)
	@touch $@

$(ORACLE): $(DEV)
	@echo "installing pylance and its companions into $(VENV) (once)"
	@$(call install,$(VENV),--constraint constraints.txt --group oracle --group bench)
	@touch $@

$(CLOUD): $(DEV)
	@echo "installing an S3 server for the tests into $(VENV) (once)"
	@$(call install,$(VENV),--constraint constraints.txt --group cloud)
	@touch $@

$(SPARK): $(DEV)
	@echo "installing Spark into $(VENV) (once)"
	@$(call install,$(VENV),--constraint constraints.txt --group spark)
	@touch $@

$(PROTO): pyproject.toml
	@$(call create,$(PROTO_VENV))
	@$(call install,$(PROTO_VENV),--group proto)
	@touch $@
