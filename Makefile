# Each target sets up what it needs from nothing: Python 3.11, Java 17 (for Spark) and the package registries.
PYTHON ?= python3
BIN := .venv/bin
SHELL := bash
.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE # some images set it: each of a hundred processes would compile all that it imports

.PHONY: help demo test kafka lakehouse lake-rounds cluster-test connect-test spark-versions faults soak mutants environments browser axe check tables licences docs bench \
	bench-papers bench-shipped bench-peers bench-vectors pack wheel lock clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

.venv/ready: pyproject.toml constraints.txt
	@echo "Setting up .venv (a minute or two, once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@sed -n '/^uv==/,/[^\\]$$/p' constraints.txt > .venv/uv.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r .venv/uv.txt
	@$(BIN)/uv pip install --python $(BIN)/python --require-hashes -r constraints.txt
	@$(BIN)/uv pip install --python $(BIN)/python --no-deps --build-constraint constraints.txt -e .
	@touch $@

demo: .venv/ready ## replay a year of New York flights through Spark, watch the answer change
	@$(BIN)/skyband demo --spark

test: .venv/ready ## all tests and doctests
	@($(MAKE) --silent kafka || echo "Without its jars the tests of Kafka skip.") & \
		$(MAKE) --silent pack; made=$$?; wait; exit $$made
	@SKYBAND_KERNELS=$${SKYBAND_KERNELS:-only} $(BIN)/python -m pytest -n 2 -q
	@{ command -v chromium && command -v chromedriver; } > /dev/null || \
		echo "NOT TESTED: the page in a browser (tests/dashboard/test_page.py). make browser installs Chromium."
	@test -f build/axe.min.js || echo "NOT TESTED: the accessibility of the page. make axe fetches axe-core (npm)."

pack: .venv/ready ## compile all kernels ahead (minutes), those that have changed (seconds)
	@$(BIN)/skyband compile

wheel: pack ## dist: a wheel with compiled kernels for this kind of machine, and one for any
	@rm -rf dist
	@$(BIN)/uv build --quiet --wheel --build-constraint constraints.txt
	@SKYBAND_WHEEL=plain $(BIN)/uv build --quiet --wheel --build-constraint constraints.txt
	@ls -l dist

kafka: .kafka/ready ## fetch a Kafka broker and Spark's connector (pinned, 54 MB) for the tests

.kafka/ready: tests/broker/jars.lock | .venv/ready
	@$(BIN)/python tests/broker/fetch.py .kafka
	@touch $@

lake-rounds: .venv/ready pack ## kill -9 of drivers that write to Delta (PySpark 4.2) and Iceberg (4.1), 20 rounds each
	@$(MAKE) --silent spark-versions SPARK_CORE=tests/spark/test_lake_rounds.py SKYBAND_ROUNDS=$${SKYBAND_ROUNDS:-20} \
		SKYBAND_LAKEHOUSE=needed

lakehouse: .lakehouse/ready ## fetch the jars of Delta and Iceberg (pinned, 60 MB) for the tests with PySpark 4.2 and 4.1

.lakehouse/ready: tests/lakehouse/jars.lock | .venv/ready
	@$(BIN)/python tests/broker/fetch.py .lakehouse $<
	@touch $@

cluster-test: .venv/ready ## a Spark cluster of processes, and one of them killed in mid-run (minutes)
	@SKYBAND_CLUSTER=1 $(BIN)/python -m pytest -q -n 0 tests/spark/test_cluster.py

connect-test: .venv/ready ## shards, restarts and types over Spark Connect, and pyspark-client alone (minutes); `make test` has a sample
	@SPARK_REMOTE="local[2]" $(BIN)/python -m pytest -q -n 0 tests/spark/test_partitions.py tests/spark/test_schema.py
	@SKYBAND_CLIENT=1 $(BIN)/python -m pytest -q -n 0 tests/spark/test_client.py

# PySpark 4.1 leaves sockets open that Python then warns of
SPARK_CORE := $(addprefix tests/spark/test_,pipeline.py partitions.py schema.py session.py recipes.py faults.py lakehouse.py kafka.py)
spark-versions: .venv/ready pack ## the core of the Spark tests with PySpark 4.1 and 4.2 (minutes; SPARK_VERSIONS="4.1.4")
	@$(MAKE) --silent lakehouse || echo "Without their jars the tests of Delta and Iceberg skip."
	@$(MAKE) --silent kafka && $(BIN)/python tests/broker/fetch.py .kafka tests/broker/spark-4.1.lock || \
		echo "Without its jars the tests of Kafka skip."
	@for version in $${SPARK_VERSIONS:-4.1.4 4.2.1}; do \
		place=build/spark/$$version; echo "PySpark $$version"; \
		test -x $$place/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $$place || exit; \
		$(BIN)/uv pip install --quiet --python $$place/bin/python -e ".[dev,kafka]" "pyspark[connect]==$$version" "protobuf>=6.33.5" || exit; \
		SKYBAND_KERNELS=only $$place/bin/python -m pytest -q -n 0 -p no:cacheprovider -W "ignore:unclosed:ResourceWarning" \
			$(SPARK_CORE) || exit; \
	done

faults: .venv/ready ## break what can break, 50 rounds of each (three hours), and count what was lost
	@mkdir -p out && rm -f out/faults.jsonl
	@SKYBAND_LEDGER=$(CURDIR)/out/faults.jsonl SKYBAND_ROUNDS=$${SKYBAND_ROUNDS:-50} SKYBAND_FUZZ=20 \
		$(BIN)/python -m pytest -q -n 0 tests/faults tests/monitor/test_threads.py tests/dashboard/test_fuzz.py tests/spark/test_rounds.py tests/spark/test_start_rounds.py \
		tests/spark/test_disks.py
	@PYTHONPATH=tests $(BIN)/python -m faults.ledger out/faults.jsonl

soak: .venv/ready ## half an hour of a stream in the Monitor and on Spark: memory, state, time (SOAK=minutes)
	@$(BIN)/python -m benchmarks.soak --minutes $${SOAK:-30}

mutants: .venv/ready ## break the engines in every known way: the tests must notice
	@SKYBAND_MUTANTS=all $(BIN)/python -m pytest -n 2 -q tests/*/test_*mutants.py

environments: .venv/ready ## install the wheel with Python 3.11 to 3.13, pandas 2 and 3, and use it there
	@$(BIN)/python tests/environments.py $(ENVIRONMENTS)

tables: .venv/ready ## the tables and measured numbers in README.md and docs, from rows of algorithms and results
	@$(BIN)/python docs/algorithm_tables.py
	@$(BIN)/python -m benchmarks.documents

licences: .venv/ready ## docs/licences.md, from the metadata of what is installed
	@$(BIN)/python docs/licences.py

docs: .venv/ready ## the documentation as a site, out/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build 2>&1 | grep -v "^INFO"; exit $${PIPESTATUS[0]}
	@echo "out/site/index.html"

build/axe.min.js:
	@mkdir -p build
	@cd build && tar -xzf "$$(npm pack --silent axe-core)" package/axe.min.js && mv package/axe.min.js . && rm -r package *.tgz

browser: ## Chromium and its driver from Debian's packages, for the tests of the page (needs root)
	@{ command -v chromium && command -v chromedriver; } > /dev/null || { \
		export DEBIAN_FRONTEND=noninteractive; get="timeout 300 apt-get install -qq -y --no-install-recommends"; \
		echo "Installing Chromium ..."; \
		$$get chromium chromium-driver > /dev/null 2>&1 || \
		{ timeout 120 apt-get update -qq && $$get chromium chromium-driver > /dev/null; } || \
		{ echo "No Chromium: it is installed as root, where Debian's packages can be reached." >&2; exit 1; }; }

axe: .venv/ready build/axe.min.js ## the page in Chromium, with axe-core's accessibility checks (needs npm)
	@$(BIN)/python -m pytest -q tests/dashboard/test_page.py

check: .venv/ready ## lint, format, types, layers, numbers in documents, documentation
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m benchmarks.documents --check
	@$(MAKE) --no-print-directory docs

bench: .venv/ready ## run the experiments, draw the figures, write their numbers into the documents
	@$(BIN)/python -m benchmarks.run
	@$(BIN)/python -m benchmarks.run --quick --from benchmarks/experiments/papers
	@$(BIN)/python -m benchmarks.plot
	@$(BIN)/python -m benchmarks.documents

bench-papers: .venv/ready ## the papers' experiments at their own sizes (hours): stop it, and it goes on where it was
	@$(BIN)/python -m benchmarks.run --go-on --from benchmarks/experiments/papers
	@$(BIN)/python -m benchmarks.plot --from benchmarks/experiments/papers

bench-peers: .venv/ready .peers/flink/ready .peers/duckdb/ready ## the same work by Flink, Spark, DuckDB and frames (an hour)
	@$(BIN)/python -m benchmarks.run peers peers-items peers-frames peers-latency peers-late
	@$(BIN)/python -m benchmarks.plot peers
	@$(BIN)/python -m benchmarks.documents

bench-vectors: .venv/ready .peers/faiss/ready ## standing vectors against FAISS's flat index (10 minutes, 8 GB of memory)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.run peers-vectors

.peers/%/ready: benchmarks/peers/%.lock | .venv/ready
	@echo "Fetching .peers/$* (Flink: 400 MB, once) ..."
	@test -x .peers/$*/bin/python || $(PYTHON) -m venv .peers/$*
	@$(BIN)/uv pip install --quiet --python .peers/$*/bin/python -r $<
	@touch $@

bench-shipped: .venv/ready pack ## first answers of processes, and shipped against native kernels (minutes)
	@$(BIN)/python -m benchmarks.shipped 3 > out/shipped.jsonl && mv out/shipped.jsonl benchmarks/shipped.jsonl

lock: .venv/ready ## pin the newest versions that fit, with the hashes of their files
	@printf 'uv\nhatchling\n' | $(BIN)/uv pip compile pyproject.toml - --extra all --extra dev --python-version 3.11 --upgrade --quiet \
		--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links -o constraints.txt

clean: ## remove what can be made again
	rm -rf .venv .kafka .lakehouse .peers out/demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
