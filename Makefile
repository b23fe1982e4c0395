# A thin door: CMake, Ninja and CTest do the work. `make help` lists what is here.
BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
export YES

.PHONY: all deps demo check check-long install clean help bless

all:
	@tools/deps.sh --check build
	@tools/build.sh $(BUILD) release -DBRAID_TESTS=OFF

deps:
	@tools/deps.sh all

demo:
	@tools/deps.sh demo
	@tools/build.sh $(BUILD) release -DBRAID_TESTS=OFF
	@examples/digits/demo.sh $(BUILD)/braid

check:
	@tools/deps.sh all
	@tools/check.sh $(BUILD) $(JOBS)

check-long:
	@tools/deps.sh all
	@tools/check.sh $(BUILD) $(JOBS) long

install:
	@tools/deps.sh --check build
	@tools/build.sh $(BUILD) release -DBRAID_TESTS=OFF -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --install $(BUILD) --prefix $(PREFIX)

bless:
	cmake --build $(BUILD) --target bless-onnx bless-cases bless-cli

clean:
	rm -rf build build-*

help:
	@echo "make             build the library and the program (into $(BUILD))"
	@echo "make deps        name what is missing and install it"
	@echo "make demo        all of the above, then classify the digits of examples/digits"
	@echo "make check       all of the above, then every test (up to 20 minutes on 2 cores)"
	@echo "make check-long  the whole suite under sanitizers and GPU-assisted validation"
	@echo "make install     PREFIX=$(PREFIX)"
	@echo "make bless       take the last test results as the expected ones"
	@echo "make clean       remove the build folders"
	@echo "YES=1            do not ask before apt's sources change"
