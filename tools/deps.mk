# deps.mk: the packages that each target needs, by Debian's names.
#
# SPDX-License-Identifier: BSD-2-Clause

# Debian's names of what each target needs, under what needs it; tools/need.sh installs them. Where a header shows
# whether a package is there, it stands before the package's name, and what lacks it is not built.
headers_lib     := stdlib.h:libc6-dev ck_pr.h:libck-dev
headers_global  := hiredis/hiredis.h:libhiredis-dev openssl/ssl.h:libssl-dev
headers_gate    := openssl/sha.h:libssl-dev urcu/urcu-bp.h:liburcu-dev
headers_command := jansson.h:libjansson-dev ini.h:libinih-dev zlib.h:zlib1g-dev uthash.h:uthash-dev ncurses.h:libncurses-dev
headers_demo    := microhttpd.h:libmicrohttpd-dev
headers_bench   := sqlite3.h:libsqlite3-dev lua5.1/lua.h:liblua5.1-0-dev
package = $(lastword $(subst :, ,$(1)))
packages = $(foreach h,$(headers_$(1)),$(call package,$(h)))

# Compilers whose package has another name.
need_compiler_cc := gcc
need_compiler_musl-gcc := musl-tools
need_lib   := gcc make pkg-config $(call packages,lib) systemtap-sdt-dev
need_build := $(need_lib) $(foreach w,global gate command,$(call packages,$(w)))
need_demo  := $(call packages,demo) wrk curl
need_cli   := jq prometheus-node-exporter fail2ban nftables gnuplot-nox python3-prometheus-client bsdutils util-linux zsh fish
need_server := redis-tools openssl nginx nginx-dev apache2-bin apache2-dev libssl-dev procps iproute2 python3
# For benches nginx is unpacked into O= and not installed, for that would start it; these are what it needs.
need_bench := $(call packages,bench) valgrind redis-tools nginx-dev libpcre2-8-0 'libssl3|libssl3t64' apache2-bin apache2-dev libssl-dev \
	'libpng16-16|libpng16-16t64' util-linux python3-dev 'luajit2|luajit' lua5.3 liblua5.3-dev
need_clang := clang 'libclang-rt-14-dev|libclang-rt-dev'
need_arm64 := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
need_musl  := musl-tools
need_proof := spin z3 python3-z3
need_deb   := build-essential git perl debhelper nginx-dev apache2-dev libssl-dev mandoc lowdown
need_bundles := binutils git
need_lint  := clang-format g++ binutils lintian gdb
for_build := 'library and command:' $(need_build)
for_demo  := $(for_build) 'make demo:' $(need_demo)
for_bench := $(for_demo) 'make bench, tests/build:' $(need_bench)
for_fuzz  := $(for_build) 'tests/fuzz:' $(need_clang)
for_test   = $(for_build) 'make test:' perl 'tests/cli:' $(need_demo) $(need_cli) $(call for_annexes,$(filter $(annex_names),$(GROUPS)))
for_annexes = $(foreach a,$(1),'tests of $(a):' $(need_$(a)))
of_annexes = $(foreach a,$(annex_names),$(need_$(1)_$(a)))
for_deb   = $(for_build) 'make deb:' $(need_deb) $(call of_annexes,deb)
for_bundles = $(for_build) 'make bundles:' $(need_bundles) $(call of_annexes,bundles)
for_check = $(for_build) 'all tests (prove):' perl 'tests/cli:' $(need_demo) $(need_cli) 'tests/server:' $(need_server) \
	$(call for_annexes,$(annex_names)) \
	'tests/model, tests/proof:' $(need_proof) 'builds with clang, tests/fuzz:' $(need_clang) 'build for aarch64:' \
	$(need_arm64) 'build with musl:' $(need_musl) 'tests/build:' $(need_bench) $(need_deb) $(call of_annexes,deb) $(need_lint)
