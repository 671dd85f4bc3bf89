# Weir: everything one does with a checkout. `make` alone lists it.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# The first Python that is new enough; it is only used to make the environment.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv/bin
LOCAL := $(VENV)/python -m weir_local
PYTEST := $(VENV)/python -m pytest
DETACHED := $(if $(DETACH),--detach)

# When make began: `make test` tells how long the set-up took.
BEGAN_S := $(shell date +%s)

# Stopping, and looking at what runs, must work offline and on a full disk: no set-up.
READY := $(VENV)/python -c 'import weir_local' 2>/dev/null || { echo "weir: this checkout must be set up for that, found no .venv that works; run \`make setup\`" >&2; exit 1; }

export WEIR_HOME WEIR_PORT_BASE

.PHONY: help setup demo up down status logs link reset \
	test test-unit test-disruption soak lint chart chart-tools class-archives bench-latency bench-alerts \
	bench-engine bench-rest bench-ingest bench-query bench-rows bench-sketches bench-flink bench-growth bench-cpu bench-arrow \
	bench-phases bench-rebuild bench-resolutions bench-tenants \
	images-offline lock

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing (every other target does it too)
	@test -n "$(PYTHON)" || { echo "weir: Python 3.11 or newer must be on PATH, found none; install it" >&2; exit 1; }
	@PYTHONPATH=infra/local $(PYTHON) -m weir_local.bootstrap

demo: setup ## start everything and feed it real data; Ctrl-C stops (DETACH=1 returns)
	@exec $(LOCAL) demo $(DETACHED)

up: setup ## start everything; Ctrl-C stops (DETACH=1 returns)
	@exec $(LOCAL) up $(DETACHED)

down: ## stop everything; nothing accepted is lost
	@$(READY)
	@$(LOCAL) down

status: ## how each part is: running, ready, lag, freshness, memory, log
	@$(READY)
	@$(LOCAL) status

logs: ## what the parts write (PART=ingest for one of them)
	@$(READY)
	@$(LOCAL) logs $(PART) --follow || test $$? -eq 130

link: ## print a new sign-in link
	@$(READY)
	@$(LOCAL) link

reset: ## stop and remove all events, numbers and keys (YES=1 does not ask)
	@$(READY)
	@$(LOCAL) reset $(if $(YES),--yes)

test: setup chart-tools class-archives ## everything CI runs but the disruption tests: lint, pages, Python
	@WEIR_BEGAN_S=$(BEGAN_S) $(VENV)/python -m weir_local.checks

test-unit: setup ## the tests of core and services that need no server, in seconds
	@$(PYTEST) -q -n 2 --dist worksteal libs services cli -m "not kafka and not redis and not spark and not stack and not browser and not disruption and not thorough"

test-disruption: setup class-archives ## break parts on purpose and compare with a recount; hours (ONLY=NAME runs some)
	@WEIR_BEGAN_S=$(BEGAN_S) $(VENV)/python -m weir_local.checks --disruption "$(ONLY)"

soak: setup ## load and bursts, faults, edits, restarts (MINUTES=30 RATE=500); fails by itself
	@PYTHONPATH=tests:tests/shared $(VENV)/python -m disruption.soak $(or $(MINUTES),30) $(RATE)

lint: setup ## formats, lint rules, types, spelling
	@$(VENV)/python -m weir_local.checks --lint

chart: setup ## write the chart's schema and golden files anew
	@PYTHONPATH=infra/chart $(VENV)/python -m weir_chart

chart-tools: setup ## install what checks the chart: Helm, built once in minutes, and two more
	@PYTHONPATH=infra/chart $(VENV)/python -m weir_chart.tools

class-archives: setup ## have the classes of Kafka and Spark mapped, which starts them faster
	@$(VENV)/python -m weir_local.class_archives

bench-latency: setup ## time from a POST to the pane and to the screen
	@$(VENV)/python bench/latency.py

bench-alerts: setup ## time from the event that crosses a limit to the webhook
	@$(VENV)/python bench/alerts.py

bench-engine: setup ## events a second and a core of the engine
	@$(VENV)/python bench/engine.py

bench-flink: setup ## the engine beside Flink SQL, the same metrics on the same topic
	@$(VENV)/python bench/flink.py

bench-growth: setup ## cost of an event with more events, series, definitions; an hour
	@$(VENV)/python bench/growth.py

bench-arrow: setup ## what events cost that are parsed and counted in Arrow, beside Spark's reader
	@$(VENV)/python bench/arrow.py

bench-cpu: setup ## where the engine's CPU goes, by phase
	@$(VENV)/python bench/cpu.py

bench-phases: setup ## what each phase of a small batch takes at 1,000 events/s
	@$(VENV)/python bench/phases.py

bench-rebuild: setup ## counting everything again after a loss, beside live counting
	@$(VENV)/python bench/rebuild.py

bench-tenants: setup ## what one tenant sees beside another that sends a million series; half an hour
	@$(VENV)/python bench/tenants.py

bench-rest: setup ## cold start, and what the stack uses at rest and at 1,000 events/s; 40 minutes
	@$(VENV)/python bench/rest.py

bench-ingest: setup ## one event a request, and NDJSON, beside a bare server
	@$(VENV)/python bench/ingest.py

bench-query: setup ## the query engine over a day of panes
	@$(VENV)/python bench/query.py

bench-rows: setup ## bytes and time of a pane's row in Redis
	@$(VENV)/python bench/rows.py

bench-resolutions: setup ## each resolution stored with each batch, beside composed on reading
	@$(VENV)/python bench/resolutions.py

bench-sketches: setup ## accuracy and cost of the sketches
	@$(VENV)/python bench/sketches.py

images-offline: setup ## build and run the images without engine and registry; root, minutes
	@PYTHONPATH=infra/images $(VENV)/python -m weir_images.build
	@PYTHONPATH=infra/images $(VENV)/python -m weir_images.run

lock: setup ## write the locks of Python packages, images, jars and Node packages anew
	@$(VENV)/python -m weir_local.relock
