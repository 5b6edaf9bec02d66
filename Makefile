# SPDX-License-Identifier: GPL-3.0-or-later

INVENTORY ?= inventories/local
# Folders of tests/acceptance, comma-separated, for prove.
SYSTEMS ?= persia
# Of the cluster that make run brings up, for bench.
KUBECONFIG ?= $(HOME)/.kube/muster-muster.kubeconfig
# More options for ansible-playbook: make run ARGS='--check --diff'
ARGS ?=

# Where the environment forbids it, too: every one of many short processes would compile Ansible anew, which doubles its start.
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run status down prove conformance test bench docs histories clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv (pinned) and link this clone as the collection muster.ml
	@scripts/setup run

run: ## the main job: a cluster on this machine, the systems on it, a model trained (again: nothing to change)
	@scripts/play site.yml -i $(INVENTORY) $(ARGS)

status: ## what is there and in what state
	@scripts/play playbooks/status.yml -i $(INVENTORY) $(ARGS)

down: ## remove the systems, their data excepted: make down, make down SYSTEMS=elastic
	@scripts/play playbooks/teardown.yml -i $(INVENTORY) $(if $(filter command line,$(origin SYSTEMS)),--tags $(SYSTEMS)) $(ARGS)

prove: ## check every claim, faults included, on a local cluster made for it: make prove SYSTEMS=persia
	@case ",$(SYSTEMS)," in *,eks,* | *,gke,*) scripts/setup test ;; esac # the simulated clouds
	@scripts/play tests/acceptance/acceptance.yml -i inventories/local \
		-e '{acceptance_systems: [$(SYSTEMS)], acceptance_faults: true, acceptance_delete_cluster: true}' \
		-e local_cluster_name=prove -e local_cluster_audit_log=/var/log/muster/prove/audit.log $(ARGS)
	@case ",$(SYSTEMS)," in *,eks,*) .venv/bin/pytest -n 2 --dist loadfile tests/simulators/aws ;; esac
	@case ",$(SYSTEMS)," in *,gke,*) .venv/bin/pytest -n 2 --dist loadfile tests/simulators/google ;; esac

conformance: ## Kubernetes' own conformance tests, on a local cluster made for them
	@scripts/play tests/conformance/conformance.yml -i inventories/local -e @tests/conformance/vars.yml $(ARGS)

test: ## every check, from nothing: static, unit, sanity, molecule on a real cluster (ONLY='ruff unit' for a few)
	@scripts/setup test
	@.venv/bin/python tests/run.py $(ONLY)

bench: ## the speed of the apply engine beside kubectl and kubernetes.core, of site.yml, and of models behind a Gateway (ONLY=serving for one)
	@scripts/setup bench
	@.venv/bin/python tests/bench/benches.py $(ONLY) --kubeconfig $(KUBECONFIG) --args='$(ARGS)'

docs: ## the documentation as a site, build/site/html, seen in a headless browser (apt install chromium)
	@scripts/setup docs
	@PYTHONPATH=tests:build/collections .venv/bin/python -m support.docs.site
	@.venv/bin/pytest tests/site

histories: ## 20,000 random histories of owners, strangers and killed runs, and unit tests with more values of each kind (make test tries fewer)
	@scripts/setup test
	@MUSTER_HISTORIES=20000 MUSTER_HOSTILE=20000 .venv/bin/pytest -n 2 tests/histories tests/unit/plugins/modules/test_hostile_values.py
	@MUSTER_EXAMPLES=100 .venv/bin/pytest -n 2 -m hypothesis tests/unit

clean: ## remove the local cluster with all it left on this machine, then build/ (caches and .venv stay)
	@scripts/play playbooks/teardown.yml -i $(INVENTORY) -e muster_delete_data=true -e muster_delete_cluster=true $(ARGS)
	@rm -rf build
