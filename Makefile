# Tenon's commands. `make help` lists them.
.DEFAULT_GOAL := build

BUILD      := build
CMAKE_ARGS :=
PYTHON     := .venv/bin/python
CONFIGURE  := cmake -S . -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_ARGS)
CTEST      := ctest --output-on-failure --parallel 2

# ccache fails where it cannot write its folder, so it gets one inside the tree there.
ifndef CCACHE_DIR
ifneq ($(shell mkdir -p "$$HOME/.cache" 2>/dev/null && test -w "$$HOME/.cache" && echo writable),writable)
export CCACHE_DIR := $(CURDIR)/.cache/ccache
endif
endif

.PHONY: help
help:  ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 28

.PHONY: packages packages-all venv
packages:
	@scripts/install_packages
packages-all:
	@scripts/install_packages --all
venv: | packages
	@scripts/make_venv requirements-test.txt

$(BUILD)/build.ninja: | packages
	$(CONFIGURE) -B $(BUILD)

.PHONY: build
build: $(BUILD)/build.ninja | packages  ## build the library, the command and the tests into build/
	cmake --build $(BUILD)

# Builds the extension in build/ too: nothing is compiled twice.
.PHONY: python
python: $(BUILD)/build.ninja venv | packages  ## build the Python package and install it into .venv
	$(PYTHON) -m pip install . --quiet --disable-pip-version-check --no-deps --no-build-isolation --config-settings build-dir=$(BUILD)

.PHONY: demo
demo: $(BUILD)/build.ninja | packages  ## read the handwritten digits of examples/digits
	cmake --build $(BUILD) --target tenon_cli
	@echo
	@"$$(scripts/find_python)" scripts/show_picture examples/digits/picture.pgm
	@echo
	$(BUILD)/tenon run examples/digits/digits.onnx --input picture=examples/digits/picture.pgm --placement --time

.PHONY: test
test: build python venv  ## what CI runs: build, unit tests, conformance, Python tests
	$(PYTHON) tests/onnx_suite.py
	$(CTEST) --test-dir $(BUILD)
	$(PYTHON) -m pytest tests

.PHONY: test-all
test-all: packages-all  ## test, and everything that takes long: sanitizers, thread counts, all models, style
	$(MAKE) test
	$(MAKE) check-format
	$(MAKE) test-threads
	$(MAKE) test-levels
	$(MAKE) test-decompositions
	$(MAKE) test-cuda
	$(MAKE) test-lifting
	$(MAKE) test-conversion
	$(MAKE) test-compiled
	$(MAKE) test-models
	$(MAKE) test-differential
	$(MAKE) test-accuracy
	$(MAKE) test-wheel
	$(MAKE) test-clients
	$(MAKE) test-ray
	$(MAKE) test-report
	$(MAKE) test-address
	$(MAKE) test-thread
	$(MAKE) test-emulated
	$(MAKE) check-tidy

.PHONY: test-threads
test-threads: build venv  ## unit tests and conformance with one thread and with several
	TENON_THREADS=1 $(CTEST) --test-dir $(BUILD) --exclude-regex '^fuzz_'
	TENON_THREADS=4 $(CTEST) --test-dir $(BUILD) --exclude-regex '^fuzz_'
	$(PYTHON) tests/conformance.py --threads 1
	$(PYTHON) tests/conformance.py --threads 4

.PHONY: test-levels
test-levels: build venv  ## conformance at every level of the optimiser, and what `tenon optimize` writes of every model
	for level in none exact basic extended; do $(PYTHON) tests/conformance.py --level $$level || exit 1; done
	TENON_ALL=1 $(PYTHON) -m pytest tests/test_optimize.py

.PHONY: test-decompositions
test-decompositions: build venv  ## conformance with every operator as smaller ones, where it has a decomposition
	$(PYTHON) tests/conformance.py --decompose all

# The CUDA provider on a stand-in for NVIDIA's libraries, which runs kernels on the CPU.
EMULATED := TENON_CUDA_PATH=$(CURDIR)/$(BUILD)/cuda_emulated TENON_KERNEL_CACHE=$(CURDIR)/$(BUILD)/cuda_emulated/kernels
.PHONY: test-cuda
test-cuda: build venv  ## conformance with the CUDA provider, on a stand-in for the GPU; its kernels through NVRTC, if that is installed
	rm -rf $(BUILD)/cuda_emulated/sources && mkdir -p $(BUILD)/cuda_emulated/sources
	$(EMULATED) TENON_EMULATED_SOURCES=$(CURDIR)/$(BUILD)/cuda_emulated/sources \
	  TENON_KERNEL_CACHE=$(CURDIR)/$(BUILD)/cuda_emulated/sources/kernels $(PYTHON) tests/conformance.py --provider cuda,cpu
	$(PYTHON) tests/cuda/compile_kernels.py $(BUILD)/cuda_emulated/sources || [ $$? -eq 3 ]

.PHONY: test-lifting
test-lifting: build venv  ## conformance with every model brought up one opset at a time, through saving and loading
	$(PYTHON) tests/conformance.py --lift-steps

.PHONY: test-conversion
test-conversion: build python venv  ## every node case of the ONNX suite converted to every opset from 7 to 27; an old onnxruntime runs converted models
	TENON_ALL=1 $(PYTHON) -m pytest -s tests/test_conversion.py tests/test_convert.py

.PHONY: test-compiled
test-compiled: build venv  ## conformance with every model compiled to a file first, and every model of tests/models
	$(PYTHON) tests/conformance.py --compile
	TENON_ALL=1 $(PYTHON) -m pytest tests/test_compiled_models.py

.PHONY: test-models
test-models: build venv  ## every model of tests/models, and those of PyPI packages, against onnxruntime
	TENON_ALL=1 $(PYTHON) -m pytest tests/test_models.py tests/test_package_models.py tests/test_plans.py tests/test_dynamic.py tests/test_convert_dtype.py tests/test_cli_surgery.py tests/test_cli_check.py tests/test_check_targets.py

.PHONY: test-differential
test-differential: build venv  ## thousands of random nodes against onnxruntime
	TENON_ALL=1 $(PYTHON) -m pytest tests/test_differential.py

.PHONY: test-accuracy
test-accuracy: python venv  ## quantized models on real data: what they lose in accuracy; downloads 105 MB
	@scripts/make_venv requirements-test.txt requirements-accuracy.txt
	TENON_ALL=1 $(PYTHON) -m pytest tests/test_accuracy.py

.PHONY: test-clients
test-clients: $(BUILD)/build.ninja venv | packages  ## programs that use onnxruntime, as they are, with Tenon in its place; downloads 600 MB
	TENON_ALL=1 $(PYTHON) -m pytest tests/test_clients.py

.PHONY: test-ray
test-ray: $(BUILD)/build.ninja venv | packages  ## tenon.ray on a local cluster of two nodes
	$(PYTHON) tests/clients/environments.py ray
	TENON_ALL=1 $(BUILD)/clients/ray/bin/python -m pytest tests/test_ray.py -W ignore::DeprecationWarning

.PHONY: test-report
test-report: build venv | packages-all  ## pages of `tenon report` in headless Chromium; pictures of them in build/reports
	TENON_ALL=1 $(PYTHON) -m pytest tests/test_report.py

# As a user installs it: nothing but what pyproject.toml asks for, and the oldest NumPy that it allows. The compiler is
# named as in other builds, so that ccache finds what these compiled.
.PHONY: test-wheel
test-wheel: | packages  ## `pip install .` into a clean environment, and the Python tests there
	rm -rf $(BUILD)-clean
	"$$(scripts/find_python)" -m venv $(BUILD)-clean
	CXX=c++ $(BUILD)-clean/bin/python -m pip install . --quiet --disable-pip-version-check --config-settings build-dir=$(BUILD)-wheel
	$(BUILD)-clean/bin/python -m pip install --quiet --disable-pip-version-check numpy==1.26.4 $$(grep -E '^(onnx|pytest)==' requirements-test.txt)
	$(BUILD)-clean/bin/python -m pytest tests/python

.PHONY: test-address
test-address: venv | packages  ## unit tests and conformance with the address and undefined-behaviour sanitizers
	$(CONFIGURE) -B $(BUILD)-asan -DTENON_SANITIZE=address,undefined
	cmake --build $(BUILD)-asan
	$(CTEST) --test-dir $(BUILD)-asan
	$(PYTHON) tests/conformance.py --binary $(BUILD)-asan/tenon

.PHONY: test-thread
test-thread: | packages  ## thread pool and session tests with the thread sanitizer
	$(CONFIGURE) -B $(BUILD)-tsan -DTENON_SANITIZE=thread
	cmake --build $(BUILD)-tsan --target test_base test_session
	$(CTEST) --test-dir $(BUILD)-tsan --tests-regex '^(base|session)$$' --no-tests=error

.PHONY: test-emulated
test-emulated: build | packages-all  ## kernels of the other processor, and those that this CPU lacks, in emulators
	scripts/test_emulated

.PHONY: check-format check-tidy format
check-format: | packages-all  ## clang-format would change nothing
	scripts/run_clang_format --check
check-tidy: | packages-all  ## clang-tidy has nothing to say
	@scripts/make_venv requirements-test.txt requirements-style.txt
	$(CONFIGURE) -B $(BUILD)-tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DTENON_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/$(PYTHON)
	scripts/run_clang_tidy --build $(BUILD)-tidy
format: | packages-all  ## clang-format every source file
	scripts/run_clang_format

.PHONY: bench
bench: python | packages  ## benchmarks of loading, of the kernels, and of MODELS beside other engines
	scripts/make_venv requirements-test.txt requirements-bench.txt
	$(CONFIGURE) -B $(BUILD) -DTENON_BENCHMARKS=ON
	cmake --build $(BUILD) --target bench_load bench_kernels
	$(BUILD)/bench_load
	$(BUILD)/bench_kernels
	$(PYTHON) bench/compare.py $(or $(MODELS),mobilenet_v2 resnet50 bert_base gpt2_kv)

.PHONY: bench-operators
bench-operators: python  ## every operator beside onnxruntime, and what is bound by memory beside memcpy; one thread
	$(PYTHON) bench/operators.py
	$(PYTHON) bench/bandwidth.py

.PHONY: accuracy
accuracy: python  ## what quantizing costs in accuracy, on trained models and real data, by Tenon and by onnxruntime; downloads 105 MB
	@scripts/make_venv requirements-test.txt requirements-accuracy.txt
	$(PYTHON) bench/accuracy

.PHONY: digits
digits: | packages  ## train the model of examples/digits again and draw its picture
	@scripts/make_venv requirements-test.txt
	$(PYTHON) examples/digits/make_model.py

.PHONY: clean
clean:  ## remove everything that was built; keeps .venv
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-tidy $(BUILD)-wheel $(BUILD)-clean
