# tests.mk: tests, in one build or in all, and benchmarks.
#
# SPDX-License-Identifier: BSD-2-Clause

.PHONY: has-clang-format t tests test skipped list check check-installed check-full memcheck coverage torture schedules fuzz fuzz-afl mutants \
	check-release check-bundles format format-check demo bench bench-quick bench-check bench-record
help::
	@echo 'make test         the tests of every day: one build, a few minutes, installs nothing'
	@echo 'make t T=unit/take     one test (or several): tests/unit/take.c'
	@echo 'make demo         what it is for, in 15 seconds (installs missing packages first)'
	@echo 'make check        every test, in every build (installs missing packages; INSTALL=no: skips what needs them)'
	@echo 'make check-full   all of that and the long runs: models, crashes, torture, mutants, memcheck, coverage; hours'
	@echo 'make check-release     a stranger'"'"'s hour with the packages, on bare machines of SUITES="bookworm trixie"'
	@echo 'make check-bundles     what make bundles made, on bare machines of SUITES, without a compiler or a network'
	@echo 'make memcheck     the unit tests under valgrind'
	@echo 'make coverage     which branches of lib/ the tests take'
	@echo 'make torture      tests/torture for SECONDS=20, say 28800 over night'
	@echo 'make schedules    tests/schedule by SCHEDULES=1000000 schedules of each scene'
	@echo 'make fuzz         tests/fuzz, each target for SECONDS=20 (TARGETS= some); fuzz-afl: by AFL++'
	@echo 'make mutants      which test kills which mutant of the core; RANDOM=200 SEED=7: as many that a seed draws'
	@echo 'make format       C as .clang-format has it; format-check: what is not'
	@echo 'make bench        every benchmark, beside the peers: bench/results (10 minutes); bench-quick: a moment each'
	@echo 'make bench-check  instructions of a decision beside those on record; bench-record: puts them on record'

# Tests and benches link the library's objects, not the archive: they may call what is hidden. A test that was
# cross-built becomes a script that runs it under EMULATOR.
$(O)/tests/unit/fast.t: test_wrap := -Wl,--wrap=decide_slowly
$(O)/tests/process/failing.t: test_wrap := $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc)
$(O)/tests/%.t: $(O)/tests/%.o $(lib_obj)
	$(CC) $(all_ldflags) $(test_wrap) -o $@$(if $(EMULATOR),.bin) $^ -pthread -lm
	$(if $(EMULATOR),printf '#!/bin/sh\nexec $(EMULATOR) "$$0.bin" "$$@"\n' >$@ && chmod +x $@)

# It runs a simulation, where that can be built.
$(O)/tests/process/overload.t: | $(if $(call lacking,demo bench)$(SAN),,$(O)/bench/overload)

# tests/schedule has a library of its own, with points before each access to shared memory (lib/base/point.h) and the
# writers' lock under the scheduler.
points_obj := $(patsubst $(O)/%,$(O)/points/%,$(lib_obj))
$(O)/points/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(all_cflags) -DSHMLIMIT_POINTS -c -o $@ $<

# There memory is made up.
$(O)/tests/schedule/reserve.t: test_wrap := -Wl,--wrap=segment_populate,--wrap=segment_map_ahead,--wrap=segment_map_again
$(O)/tests/schedule/%.t: $(O)/points/tests/schedule/%.o $(points_obj)
	@mkdir -p $(@D)
	$(CC) $(all_ldflags) -Wl,--wrap=segment_lock,--wrap=segment_unlock $(test_wrap) -o $@ $^

# The command's tests in C may call whatever is in it; of the library they have what the command has.
$(O)/tests/cli/%.t: $(O)/tests/cli/%.o $(filter-out %/main.o,$(tool_obj)) \
		$(global_a) $(O)/libshmlimit.a
	$(CC) $(all_ldflags) -o $@ $^ $(tool_libs) -pthread

# With the library for many hosts, which the gate loads in other programs.
$(O)/tests/gate/looks.t: test_wrap := -Wl,--wrap=shmlimit_gone
$(O)/tests/gate/line.t: test_wrap := -Wl,--wrap=clock_gettime
$(O)/tests/gate/%.o: server_cflags = -Ilib/gate
$(O)/tests/gate/%.t: $(O)/tests/gate/%.o $(gate_obj) $(global_a) $(lib_obj)
	$(CC) $(all_ldflags) $(test_wrap) $(if $(global_a),-Wl$(comma)-u$(comma)shmlimit_global_open) -o $@ $^ $(global_libs) $(gate_libs)

# It loads and unloads the libraries, so it has nothing of them itself.
$(O)/tests/gate/unload.t: $(O)/tests/gate/unload.o | $(gate_so) $(global_so)
	$(CC) $(all_ldflags) -o $@ $^ -ldl -pthread

$(O)/bench/agent $(O)/bench/global $(O)/bench/global_sim $(O)/bench/hosts $(O)/bench/shares: $(global_obj)
# Their hosts are on a clock that is made up, and so is what is between them and their backend.
$(O)/bench/global_sim $(O)/bench/shares: $(O)/bench/world/world.o
$(O)/bench/global_sim $(O)/bench/hosts $(O)/bench/shares: bench_wrap = -Wl,--wrap=clock_gettime,--wrap=clock_nanosleep,--wrap=getrandom,$(way)
$(O)/bench/global_sim $(O)/bench/shares: way := --wrap=cluster_lease
$(O)/bench/hosts: way := --wrap=via_agent,--wrap=via_agent_exists
$(O)/bench/gate: $(gate_obj)
$(O)/bench/gate: bench_libs := $(gate_libs)
$(O)/bench/%: $(O)/bench/%.o $(bench_obj) $(lib_obj)
	$(CC) $(all_ldflags) $(bench_wrap) -o $@ $(filter %.o,$^) -Wl,--as-needed $(global_libs) -lsqlite3 \
		-llua5.1 $(bench_libs) -pthread -lm

# What libFuzzer or AFL++ feeds: some may call what is hidden in the library, some what is hidden in the command.
fuzzed := $(foreach f,$(wildcard $(addsuffix tests/fuzz/target/*.c,./ $(annexes:%=%/))),$(O)/fuzz/$(basename $(notdir $(f))))
fuzzed_command := $(patsubst %,$(O)/fuzz/%,command log_line numbers rules_file)
$(O)/fuzz/command: fuzz_wrap := -Wl,--wrap=plot_check,--wrap=clock_nanosleep
$(fuzzed_command): $(O)/fuzz/main.o $(filter-out %/main.o,$(tool_obj)) $(global_a) \
		$(O)/libshmlimit.a
$(filter-out $(fuzzed_command),$(fuzzed)): $(lib_obj)
$(O)/fuzz/spec: $(gate_obj)
$(O)/fuzz/spec: tool_libs += $(gate_libs)
$(O)/fuzz/%: $(O)/tests/fuzz/target/%.o
	@mkdir -p $(@D)
	$(CC) $(all_ldflags) -fsanitize=fuzzer $(fuzz_wrap) -o $@ $^ $(tool_libs)

$(O)/fuzz/main.o: tools/shmlimit/main.c Makefile
	@mkdir -p $(@D)
	$(CC) $(all_cflags) $(tool_inc) -Wno-missing-prototypes -Dmain=shmlimit_main -c -o $@ $<

$(O)/tests/fuzz/target/spec.o: server_cflags = -Ilib/gate

$(O)/tests/%.t: tests/%.sh $(O)/tests/tap.sh
	@mkdir -p $(@D)
	install -m 755 $< $@

$(O)/tests/tap.sh: tests/tap.sh
	@mkdir -p $(@D)
	install -m 644 $< $@

# What a group of tests runs, besides the tests; what there is not all for is left out, and its tests skip.
all_command = $(if $(call lacking,$(for_command)),,all $(if $(call lacking,demo),,$(O)/bin/shmlimit-demo))
with_group = $(if $(filter cli crash,$(1)),$(all_command)) \
	$(if $(filter build,$(1)),$(built_annexes) $(if $(call lacking,$(for_command) demo bench),,$(benches))) \
	$(if $(filter fuzz,$(1)),$(fuzzed)) $(if $(filter server,$(1)),$(all_command) $(built_annexes) $(servers)) $(if $(filter schedule,$(1)),lib) \
	$(if $(filter $(annex_names),$(1)),$(all_command)) $(foreach a,$(filter $(annex_names),$(1)),$(built_$(a)))
# Groups of which no test can be built.
left_out = $(if $(call lacking,$(for_command)),cli crash server build fuzz $(annex_names)) \
	$(if $(call lacking,global gate),gate server fuzz $(annex_names))

# Beside those of GROUPS, where the core's tests alone are asked for, what an annex in GROUPS has in other groups.
all_tests = $(foreach g,$(filter-out $(left_out),$(GROUPS)),$(call t,$(g)) $(if $(CORE),$(call elsewhere,$(filter %/$(g),$(annexes)))))
elsewhere = $(if $(1),$(foreach s,$(wildcard $(1)/tests/*/*.c $(1)/tests/*/*.sh),$(O)/$(patsubst $(1)/%,%,$(basename $(s))).t))

tests: $(all_tests) $(foreach g,$(filter-out $(left_out),$(GROUPS)),$(call with_group,$(g)))
	$(if $(filter $(left_out),$(GROUPS)),@echo 'left out: tests of $(filter $(left_out),$(GROUPS)); they need \
		$(call lacking,$(for_command) gate)')

# As many at a time as there are processors, unless make was given -j.
jobs = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# Those that take long first. A third of the rounds of what is random: make check has all.
test: GROUPS := cli process thread unit
test: export TEST_SCALE ?= 0.3
test: CORE := yes
test:
	@$(if $(no_compiler),false,command -v prove >/dev/null) || { INSTALL=ask tools/need.sh $(for_build) 'make test:' perl; \
		echo 'make test needs a compiler, $(CC), and prove' >&2; exit 1; }
	@BUILDING='what $(words $(all_tests)) tests of $(GROUPS) need, in $(O)' \
		tests/progress.sh $(MAKE) --no-print-directory $(jobs) GROUPS='$(GROUPS)' CORE=yes tests
	@SKIPPED=$$(mktemp) && export SKIPPED && \
		prove -j$$(nproc) --exec tests/note_skips.sh $(all_tests); \
		rc=$$?; $(lister) skipped GROUPS='$(GROUPS)'; rm -f "$$SKIPPED"; exit $$rc
	$(if $(filter $(left_out),$(GROUPS)),@echo 'left out: tests of $(filter $(left_out),$(GROUPS)): they need $(call lacking,$(for_command) global gate)')

# What is in the file SKIPPED, and the packages that would run it.
skipped:
	@[ ! -s '$(SKIPPED)' ] || { sort '$(SKIPPED)' | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)/skipped: \2 (\1)/'; \
		INSTALL=no tools/need.sh $(for_test); }

# As T=unit/take; more than one is several. What they print is shown as it is.
t:
	@test -n '$(T)' || { echo 'usage: make t T=unit/take' >&2; exit 2; }
	@$(MAKE) --no-print-directory $(jobs) -s $(foreach t,$(T),$(O)/tests/$(t).t) \
		$(call with_group,$(foreach t,$(T),$(firstword $(subst /, ,$(t)))))
	@rc=0; for t in $(T); do $(O)/tests/$$t.t || rc=1; done; exit $$rc

has-clang-format:
	@command -v clang-format >/dev/null || { INSTALL=ask tools/need.sh 'make format:' clang-format; exit 1; }

# All but what php's generator wrote; below tools/nginx and tools/apache it changes nothing. Version 14, as in Debian 12.
format: has-clang-format
	@find $(rooms) -name '*.[ch]' -exec clang-format -i {} +
	@find $(prose) -name '*.[ch]' ! -path '*/tests/*' -exec perl tools/reflow.pl {} +

format-check: has-clang-format
	@find $(rooms) -name '*.[ch]' -exec clang-format --dry-run --Werror {} +
	@find $(prose) -name '*.[ch]' ! -path '*/tests/*' -exec perl tools/reflow.pl --check {} +
format format-check: rooms := bench include lib tests tools
# The libraries and the command: their comments have 100 columns at most.
format format-check: prose := include lib tools/shmlimit

demo:
	@tools/need.sh $(for_demo)
	@$(MAKE) --no-print-directory $(jobs) -s all $(O)/bin/shmlimit-demo
	@tools/demo/demo.sh $(O)

bench bench-quick:
	@tools/need.sh $(for_bench)
	@tools/foreign.sh $$(dpkg --print-architecture) $(O)/peers nginx libapache2-mod-qos libapache2-mod-evasive
	@$(MAKE) --no-print-directory -s all $(O)/bin/shmlimit-demo $(benches) servers
	@CC=$(CC) bench/report.sh $(O) $(if $(filter bench,$@),bench/results,$(O)/bench/results --quick)

bench-check bench-record:
	@tools/need.sh $(for_bench)
	@$(MAKE) --no-print-directory -s $(O)/bench/decide
	@CC=$(CC) bench/instructions.sh $(O) $(if $(filter bench-record,$@),--record)

# name: the compiler, the sanitizer, the groups of tests (folders below tests/) that run there: those which take long
# first, for in this order they are started, and what is left to the end had better be short.
# Each program is run once under each kind of sanitizer; check-full runs them as both compilers have it.
builds       := gcc clang gcc-address clang-address clang-thread clang-fuzz aarch64 musl $(if $(FULL),gcc-thread)
with_gcc           := CC=gcc GROUPS='model proof crash torture process schedule server $(filter-out global,$(annex_names)) cli $(filter global,$(annex_names)) build mutant thread unit gate'
with_clang         := CC=clang GROUPS='unit process thread'
with_gcc-address   := CC=gcc SAN=address GROUPS='process cli gate $(if $(FULL),unit)'
with_clang-address := CC=clang SAN=address GROUPS='unit thread'
with_gcc-thread    := CC=gcc SAN=thread GROUPS='unit thread'
with_clang-thread  := CC=clang SAN=thread GROUPS='unit thread'
with_clang-fuzz    := CC=clang SAN=fuzz GROUPS=fuzz
with_aarch64       := CC=aarch64-linux-gnu-gcc OBJCOPY=aarch64-linux-gnu-objcopy AR=aarch64-linux-gnu-ar \
	LDFLAGS=-static FOREIGN=$(O)/arm64 CPPFLAGS=-DUNDER_EMULATOR EMULATOR=qemu-aarch64 GROUPS=unit
with_musl          := CC=musl-gcc LDFLAGS=-static FOREIGN=$(O)/musl-headers GROUPS='unit $(if $(FULL),process)'

# Which of them this machine can do: with compilers, and what their sanitizers need, or else without.
can = $(shell printf 'int main(void) { return 0; }' | $(1) -x c -o /dev/null - 2>/dev/null && echo yes)
can_build = gcc gcc-address gcc-thread $(if $(call can,clang),clang) \
	$(if $(call can,clang -fsanitize=address),clang-address clang-thread clang-fuzz) \
	$(if $(call can,aarch64-linux-gnu-gcc),$(if $(wildcard $(O)/arm64/.unpacked),aarch64)) \
	$(if $(call can,musl-gcc),$(if $(wildcard $(O)/musl-headers/.unpacked),musl))

check:
	@tools/need.sh $(for_check)
	@$(if $(filter no,$(INSTALL)),,tools/foreign.sh arm64 $(O)/arm64 libck-dev systemtap-sdt-dev && \
		tools/foreign.sh $$(dpkg --print-architecture) $(O)/musl-headers libck-dev systemtap-sdt-dev linux-libc-dev)
	@$(MAKE) --no-print-directory check-installed

# WHY NOT written out below: make -n runs each line that says MAKE, and so would run all tests.
lister := $(MAKE) --no-print-directory -s
builds_here = $(filter $(can_build),$(builds))
check-installed:
	@$(foreach b,$(filter-out $(builds_here),$(builds)),echo '== left out: $(b): no compiler, or no sanitizers' &&) true
	@$(foreach b,$(builds_here),echo '== building $(b)' && \
		$(MAKE) --no-print-directory $(jobs) -s O=$(O)/$(b) WERROR=1 $(with_$(b)) tests && ) true
	@ONCE='server build $(annex_names)' tests/prove.sh $(foreach b,$(builds_here),$$($(lister) O=$(O)/$(b) $(with_$(b)) list))

# How long is in the environment.
SECONDS := 20
torture:
	@tools/need.sh $(for_build)
	@$(MAKE) --no-print-directory -s O=$(O)/gcc CC=gcc GROUPS=torture tests
	@$(foreach t,$(patsubst %,$(O)/gcc/tests/torture/%.t,hostile torture growth),SECONDS=$(SECONDS) $(t) &&) true

# How many is in the environment or on the command line, and SEED, the first one.
schedules: export SCHEDULES ?= 1000000
schedules:
	@tools/need.sh $(for_build)
	@$(MAKE) --no-print-directory -s O=$(O)/gcc CC=gcc GROUPS=schedule tests
	@$(foreach t,$(patsubst %.c,$(O)/gcc/%.t,$(wildcard tests/schedule/*.c)),$(t) &&) true

# Each target for so long; what is found is kept in O=.
fuzz:
	@tools/need.sh $(for_fuzz)
	@$(MAKE) --no-print-directory -s O=$(O)/clang-fuzz $(with_clang-fuzz) tests
	@tests/fuzz/fuzz.sh libfuzzer $(O)/clang-fuzz $(SECONDS) $(TARGETS)

fuzz-afl:
	@tools/need.sh $(for_fuzz) afl++
	@AFL_QUIET=1 $(MAKE) --no-print-directory -s O=$(O)/afl-fuzz CC=afl-clang-fast SAN=fuzz GROUPS=fuzz tests
	@tests/fuzz/fuzz.sh afl $(O)/afl-fuzz $(SECONDS) $(TARGETS)

# Branches that the tests take, at -O0, where a branch is one of the source; fewer than the floor fail, and so does a
# file that lacks some of which tests/coverage.md does not say why. What is not seen: processes that are killed or
# leave by _exit() write nothing down. Races are where tests/schedule makes them: its library counts as well.
# WHY NOT cli too: its other users may not write counters down, and the command says so where a test reads what it says.
# Beside counters of branches a call is some ten times as long: where several processes do as many as it takes, fewer do.
coverage_floor := 95
with_coverage := O=$(O)/coverage CC=gcc CFLAGS='-O0 -g --coverage -fprofile-update=atomic' LDFLAGS=--coverage
coverage: export SCHEDULES ?= 2000
coverage:
	@tools/need.sh $(for_check) 'make coverage:' gcovr
	@$(MAKE) --no-print-directory -s $(with_coverage) GROUPS='unit schedule thread process' tests
	@find $(O)/coverage -name '*.gcda' -delete
	prove -j2 --exec '' $$($(MAKE) --no-print-directory -s $(with_coverage) GROUPS='unit schedule thread' list)
	TEST_SCALE=0.05 prove -j2 --exec '' $$($(MAKE) --no-print-directory -s $(with_coverage) GROUPS=process list)
	gcovr --root . --filter 'lib/($(subst $(space),|,$(lib_rooms)))/' --branches --exclude-unreachable-branches \
		--print-summary --csv $(O)/coverage/branches.csv --fail-under-branch $(coverage_floor) $(O)/coverage
	@tests/coverage.sh $(O)/coverage/branches.csv

# WHY NOT helgrind or drd: they know locks and pthread's objects, and would call every lock-free access a race.
memcheck:
	@tools/need.sh $(for_build) 'make memcheck:' valgrind perl
	@$(MAKE) --no-print-directory -s O=$(O)/memcheck CC=gcc CFLAGS='-O1 -g' GROUPS=unit tests
	TEST_SCALE=0.01 prove -j2 --exec 'valgrind -q --error-exitcode=9 --leak-check=full' \
		$$($(MAKE) --no-print-directory -s O=$(O)/memcheck GROUPS=unit list)

# The packages on bare machines of Debian's releases: needs root, and their archive.
SUITES := bookworm trixie
check-release:
	@tools/need.sh 'make check-release:' debootstrap git util-linux
	@tests/release/release.sh $(O) $(SUITES)
	@tests/release/container.sh $(O)

check-bundles: bundles
	@tools/need.sh 'make check-bundles:' debootstrap git util-linux
	@tests/release/bundles.sh $(O) $(SUITES)

# Everything, and the long runs: hours.
check-full:
	@MODEL_FULL=1 CRASH_FULL=1 PROOF_FULL=1 TEST_SCALE=4 $(MAKE) --no-print-directory check FULL=1
	@$(MAKE) --no-print-directory torture SECONDS=300
	@$(MAKE) --no-print-directory schedules
	@$(MAKE) --no-print-directory mutants
	@$(MAKE) --no-print-directory memcheck
	@$(MAKE) --no-print-directory coverage

mutants: SEED ?= 1
mutants: SECONDS := 3600
mutants:
	@tools/need.sh $(for_build) 'make mutants:' perl
	@$(if $(RANDOM),perl tests/mutant/random.pl $(O) $(RANDOM) $(SEED) $(SECONDS),tests/mutant/mutant.sh $(O))

list:
	@echo $(all_tests)
