# shmlimit: one rate limit for all processes of a host. `make help` says what there is to make.

O       ?= build
CC       = gcc
AR       = ar
OBJCOPY  = objcopy
CFLAGS   = -O3 -g
prefix     ?= /usr/local
bindir     ?= $(prefix)/bin
includedir ?= $(prefix)/include
libdir     ?= $(prefix)/lib
mandir     ?= $(prefix)/share/man
completionsdir ?= $(prefix)/share/bash-completion/completions
zshdir     ?= $(prefix)/share/zsh/site-functions
fishdir    ?= $(prefix)/share/fish/vendor_completions.d
unitdir    ?= $(prefix)/lib/systemd/system

VERSION   := $(shell sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' include/shmlimit.h)
SOVERSION := 0

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

# Where Node's headers are: beside the node that is found, or where Debian has them.
node_inc := $(patsubst %/node_api.h,%,$(firstword $(wildcard $(addsuffix /node_api.h,\
	$(shell readlink -f "$$(command -v node)" 2>/dev/null | sed 's|/bin/node$$|/include/node|') /usr/include/node \
	/usr/include/nodejs/src))))

need_lib   := gcc make pkg-config $(call packages,lib) systemtap-sdt-dev
need_build := $(need_lib) $(foreach w,global gate command,$(call packages,$(w)))
need_demo  := $(call packages,demo) wrk curl
need_cli   := jq gnuplot-nox python3-prometheus-client bsdutils util-linux zsh fish
need_server := redis-tools openssl nginx nginx-dev apache2-bin apache2-dev libssl-dev procps mypy python3-dev python3-pip python3-setuptools \
	python3-wheel python3-tap iproute2 gunicorn uwsgi-core uwsgi-plugin-python3 python3-uvicorn php-cli php-fpm php-apcu php-dev libfcgi-bin nodejs $(if $(node_inc),,libnode-dev) \
	python3-flask-limiter python3-djangorestframework python3-django-axes python3-fastapi \
	ruby ruby-dev ruby-rack ruby-rack-attack ruby-activesupport puma unicorn \
	php-symfony-rate-limiter php-symfony-http-foundation php-illuminate-cache php-illuminate-routing php-nyholm-psr7 php-psr-log
# For benches nginx is unpacked into O= and not installed, for that would start it; these are what it needs.
need_bench := $(call packages,bench) valgrind gnuplot-nox redis-tools nginx-dev libpcre2-8-0 libssl3 apache2-bin apache2-dev libssl-dev \
	libpcre3 libpng16-16 util-linux python3-dev
need_clang := clang libclang-rt-14-dev
need_arm64 := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
need_proof := spin z3 python3-z3
need_deb   := perl dpkg-dev debhelper nginx-dev apache2-dev libssl-dev dh-python python3-all-dev python3-setuptools \
	pybuild-plugin-pyproject dh-php php-dev $(if $(node_inc),,libnode-dev) ruby ruby-dev
need_lint  := clang-format g++ mandoc lowdown binutils lintian abigail-tools gdb
for_build := 'library and command:' $(need_build)
for_demo  := $(for_build) 'make demo:' $(need_demo)
for_bench := $(for_demo) 'make bench, tests/build:' $(need_bench)
for_fuzz  := $(for_build) 'tests/fuzz:' $(need_clang)
for_deb   := $(for_build) 'make deb:' $(need_deb)
for_check := $(for_build) 'all tests (prove):' perl 'tests/cli:' $(need_demo) $(need_cli) 'tests/server:' $(need_server) \
	'tests/model, tests/proof:' $(need_proof) 'builds with clang, tests/fuzz:' $(need_clang) 'build for aarch64:' \
	$(need_arm64) 'tests/build:' $(need_bench) $(need_deb) $(need_lint)

# SAN=address (undefined behaviour too) or SAN=thread; the latter swaps inline assembly for compiler builtins. SAN=fuzz
# is for clang, or AFL++'s, and what fuzzing needs.
SAN :=
san_address := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
san_thread  := -fsanitize=thread
san_fuzz    := -fsanitize=fuzzer-no-link -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# Concurrency Kit is headers only to us. A cross-build, which builds no gate, finds them in FOREIGN, a folder that
# tools/foreign.sh fills: the headers of one machine are wrong for another.
MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
ARCH := $(firstword $(subst -, ,$(MACHINE)))
FOREIGN :=
ifeq ($(FOREIGN),)
deps_cflags := $(shell pkg-config --cflags ck liburcu-bp 2>/dev/null)
else
deps_cflags := -isystem $(FOREIGN)/usr/include -isystem $(FOREIGN)/usr/include/$(MACHINE)
endif

# What the compiler does not find of the headers above: words such as command:libinih-dev.
hash := \#
lacks := $(shell printf '%s\n' $(foreach w,lib global gate command demo bench,$(foreach h,$(headers_$(w)), \
	'$(hash)if !__has_include(<$(firstword $(subst :, ,$(h)))>)' '$(w):$(call package,$(h))' '$(hash)endif')) | \
	$(CC) $(deps_cflags) $(CPPFLAGS) $(CFLAGS) -E -P - 2>/dev/null)
lacking = $(strip $(foreach w,$(1),$(patsubst $(w):%,%,$(filter $(w):%,$(lacks)))))
for_command := lib global command

# What is built is hardened as Debian's packages are. WHY NOT with a sanitizer: it checks more, and has its own way to
# see what FORTIFY_SOURCE replaces. FORTIFY_SOURCE needs a compiler that optimizes, and is the builder's where it is set.
# A compiler that does not know a flag, on its machine, goes without. The check of the stack costs a decision 1.1 ns of
# 47 (bench/README.md). WHY NOT leave it out there: the packages' builds have it everywhere, and 2 % is not worth a rule.
known = $(shell $(CC) -Werror $(1) -x c -c -o /dev/null /dev/null 2>/dev/null && echo $(1))
ifeq ($(SAN),)
harden_cflags := $(call known,-fstack-protector-strong) $(call known,-fstack-clash-protection) $(call known,-fcf-protection)
harden_cflags += $(if $(findstring FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,$(if $(filter-out -O0,$(filter -O%,$(CFLAGS))), \
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
harden_ldflags := -Wl,-z,relro -Wl,-z,now
# Of programs. The objects are position-independent for the libraries' sake already.
harden_pie := $(if $(filter -static,$(LDFLAGS)),,-pie)
endif

warn := -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef \
	-Wformat-security -Werror=format-security
warn += $(if $(WERROR),-Werror)
arch_x86_64 := -mcx16
# The rooms of the library and of the command. No two headers have one name, so an #include need not name the room.
lib_rooms  := base segment algorithm table decide save api
global_rooms := redis host agent api
tool_rooms := cmd text rules inspect metrics replay top
all_cflags = -std=c11 -D_GNU_SOURCE -Iinclude -Ilib $(addprefix -Ilib/,$(lib_rooms) $(addprefix global/,$(global_rooms))) $(arch_$(ARCH)) $(deps_cflags) $(warn) \
	$(harden_cflags) $(san_$(SAN)) -fPIC -fvisibility=hidden -MMD -MP $(server_cflags) $(CPPFLAGS) $(CFLAGS)
# For what starts threads, or has functions that the C library calls when a thread ends or a process forks. It stays
# loaded when its host unloads it, as a plug-in's host does while threads live that have used it.
stay_loaded := -Wl,-z,nodelete
all_ldflags = $(harden_ldflags) $(san_$(SAN)) $(LDFLAGS)

obj = $(patsubst %.c,$(O)/%.o,$(wildcard $(1)/*.c))
# The tests of a folder; what they share in shell, if they do, has the folder's name.
t   = $(patsubst %.c,$(O)/%.t,$(filter-out $(if $(call lacking,global),tests/thread/global.c),$(wildcard tests/$(1)/*.c))) \
	$(patsubst %.sh,$(O)/%.t,$(filter-out tests/$(1)/$(1).sh,$(wildcard tests/$(1)/*.sh)))

lib_obj := $(foreach r,$(lib_rooms),$(call obj,lib/$(r)))
lib_so  := $(O)/libshmlimit.so.$(VERSION)
# The library for many hosts is one of its own: only it has a network, hiredis and TLS.
global_obj := $(foreach r,$(global_rooms),$(call obj,lib/global/$(r)))
global_libs := -lhiredis -lssl -lcrypto
global_so  := $(O)/libshmlimit-global.so.$(VERSION)
global_used := $(if $(SHARED),$(global_so),$(O)/libshmlimit-global.a)
# So is the gate, in front of servers and applications: only it has libcrypto. It loads the one for many hosts when needed.
gate_obj := $(call obj,lib/gate)
gate_so  := $(O)/libshmlimit-gate.so.$(VERSION)
gate_libs := -Wl,--as-needed -lurcu-bp -lurcu-common -lcrypto -ldl -pthread
bench_obj := $(call obj,bench/kit) $(call obj,bench/peers)
# What the command and the servers' modules are linked with; a distribution that ships the library has SHARED=1.
lib_used := $(if $(SHARED),$(lib_so),$(O)/libshmlimit.a)
benches := $(patsubst %.c,$(O)/%,$(wildcard bench/*.c))
man1    := tools/shmlimit/shmlimit.1
man3    := lib/shmlimit.3 lib/global/shmlimit_global.3 lib/gate/shmlimit_gate.3
man7    := lib/shmlimit.7 lib/shmlimit-security.7
# A page of section 3 is about the header of its name, and gets a link from each function that the header declares.
headers   = $(basename $(notdir $(man3)))
functions = ${shell sed -nE 's/^[a-z].*[ *](shmlimit_[a-z_]+)\(.*/\1/p' include/$(1).h}
units   := $(wildcard tools/systemd/*.service)

.PHONY: all lib servers nginx apache php bench bench-quick bench-check bench-record demo lacking t test check check-installed check-full coverage memcheck torture schedules format \
	format-check fuzz fuzz-afl mutants tests list html install uninstall deb clean help
.DELETE_ON_ERROR:
.SECONDARY:

# The library for one host needs one package. What lacks others is left out, and said.
all: lib $(if $(call lacking,$(for_command)),,$(O)/bin/shmlimit)
	$(if $(call lacking,global),@echo 'not built: the library for many hosts; it needs $(call lacking,global)')
	$(if $(call lacking,gate),@echo 'not built: the library for servers and applications; it needs $(call lacking,gate)')
	$(if $(call lacking,$(for_command)),@echo 'not built: the command; it needs $(call lacking,$(for_command))')

lacking:
	@echo 'the library needs $(call lacking,lib)' >&2; exit 1

help:
	@echo 'make              the library and the command, in O=$(O)'
	@echo 'make test         the tests of every day: one build, a minute, installs nothing'
	@echo 'make t T=unit/take     one test (or several): tests/unit/take.c'
	@echo 'make demo         what it is for, in 10 seconds (installs missing packages first)'
	@echo 'make check        every test, in every build (installs missing packages; INSTALL=no: skips what needs them)'
	@echo 'make check-full   all of that and the long runs: models, crashes, torture, mutants, memcheck, coverage; hours'
	@echo 'make memcheck     the unit tests under valgrind'
	@echo 'make coverage     which branches of lib/ the tests take'
	@echo 'make torture      tests/torture for SECONDS=20, say 28800 over night'
	@echo 'make schedules    tests/schedule by SCHEDULES=1000000 schedules of each scene'
	@echo 'make fuzz         tests/fuzz, each target for SECONDS=20 (TARGETS= some); fuzz-afl: by AFL++'
	@echo 'make mutants      which test kills which mutant of the core'
	@echo 'make format       C as .clang-format has it; format-check: what is not'
	@echo 'make bench        every benchmark, beside the peers: bench/results (10 minutes); bench-quick: a moment each'
	@echo 'make bench-check  instructions of a decision beside those on record; bench-record: puts them on record'
	@echo 'make nginx        the module for nginx; needs nginx-dev'
	@echo 'make apache       the module for Apache httpd; needs apache2-dev'
	@echo 'make php          the extension for PHP (needs php-dev), and its classes in PHP, in $(O)/php'
	@echo 'make node         the package for Node, in $(O)/node; needs the headers of Node'
	@echo 'make ruby         the library for Ruby, in $(O)/ruby; needs ruby-dev'
	@echo 'make install      to prefix=$(prefix), below DESTDIR; also uninstall'
	@echo 'make deb          Debian packages of all of it, in $(O)/deb (installs missing packages); DEBFULLNAME= DEBEMAIL='
	@echo 'make html         the documentation, in $(O)/html; needs mandoc and lowdown'
	@echo 'make clean        remove O=$(O)'
	@echo 'Variables: O= CC= CFLAGS= SAN=address|thread WERROR=1 prefix= DESTDIR='

# For clangd and other tools: how each C file of the libraries and of the command is compiled.
compile_commands.json: Makefile
	@for c in $(patsubst $(O)/%.o,%.c,$(lib_obj) $(global_obj) $(gate_obj) $(tool_obj)); do \
		printf '%s{"directory": "%s", "file": "%s", "command": "%s"}' "$$comma" '$(CURDIR)' "$$c" \
			"$(CC) $(all_cflags) $(tool_inc) -Ilib/global -Ilib/gate -c $$c"; comma=',\n'; \
	done | { printf '[\n'; sed 's/\\n/\n/g'; printf '\n]\n'; } >$@

lib: $(O)/libshmlimit.a $(lib_so) $(if $(call lacking,global),,$(O)/libshmlimit-global.a $(global_so)) \
	$(if $(call lacking,gate),,$(O)/libshmlimit-gate.a $(gate_so))

$(O)/%.o: %.c Makefile | $(if $(call lacking,lib),lacking)
	@mkdir -p $(@D)
	$(CC) $(all_cflags) -c -o $@ $<

# One relocatable object with the hidden names made local: no internal name can clash in a static link.
$(O)/libshmlimit.a: $(lib_obj)
	@rm -f $@
	$(CC) -r -nostdlib -o $(O)/shmlimit.o $^
	$(OBJCOPY) --localize-hidden $(O)/shmlimit.o
	$(AR) rcs $@ $(O)/shmlimit.o

$(lib_so): $(lib_obj) lib/shmlimit.map
	$(CC) -shared -Wl,-soname,libshmlimit.so.$(SOVERSION) -Wl,--version-script=lib/shmlimit.map \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(all_ldflags) -o $@ $(lib_obj)
	ln -sf libshmlimit.so.$(VERSION) $(O)/libshmlimit.so.$(SOVERSION)
	ln -sf libshmlimit.so.$(SOVERSION) $(O)/libshmlimit.so
# The name that a linker looks for, which links to the library and is made beside it.
$(O)/%.so: $(O)/%.so.$(VERSION) ;
comma := ,
space := $() $()

# It copies structures in and out and hashes as the other does, by copies of the same files.
$(O)/libshmlimit-global.a: $(global_obj) $(O)/lib/base/sized.o $(O)/lib/base/hash.o
	@rm -f $@
	$(CC) -r -nostdlib -o $(O)/shmlimit_global.o $^
	$(OBJCOPY) --localize-hidden $(O)/shmlimit_global.o
	$(AR) rcs $@ $(O)/shmlimit_global.o

$(global_so): $(global_obj) $(O)/lib/base/sized.o $(O)/lib/base/hash.o $(lib_so) lib/global/shmlimit_global.map
	$(CC) -shared -Wl,-soname,libshmlimit-global.so.$(SOVERSION) -Wl,--version-script=lib/global/shmlimit_global.map \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(all_ldflags) $(stay_loaded) -o $@ $(filter %.o,$^) $(lib_so) \
		$(global_libs)
	ln -sf libshmlimit-global.so.$(VERSION) $(O)/libshmlimit-global.so.$(SOVERSION)
	ln -sf libshmlimit-global.so.$(SOVERSION) $(O)/libshmlimit-global.so

$(O)/libshmlimit-gate.a: $(gate_obj) $(O)/lib/base/sized.o
	@rm -f $@
	$(CC) -r -nostdlib -o $(O)/shmlimit_gate.o $^
	$(OBJCOPY) --localize-hidden $(O)/shmlimit_gate.o
	$(AR) rcs $@ $(O)/shmlimit_gate.o

$(gate_so): $(gate_obj) $(O)/lib/base/sized.o $(lib_so) lib/gate/shmlimit_gate.map
	$(CC) -shared -Wl,-soname,libshmlimit-gate.so.$(SOVERSION) -Wl,--version-script=lib/gate/shmlimit_gate.map \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(all_ldflags) $(stay_loaded) -o $@ $(filter %.o,$^) $(lib_so) \
		$(gate_libs)
	ln -sf libshmlimit-gate.so.$(VERSION) $(O)/libshmlimit-gate.so.$(SOVERSION)
	ln -sf libshmlimit-gate.so.$(SOVERSION) $(O)/libshmlimit-gate.so

tool_libs := -Wl,--as-needed $(global_libs) -ljansson -linih -lz -lncursesw -ltinfo
# With a copy of the keyed hash, for what strangers fill.
tool_obj := $(call obj,tools/shmlimit) $(foreach r,$(tool_rooms),$(call obj,tools/shmlimit/$(r))) $(O)/lib/base/hash.o
tool_inc := -Itools/shmlimit $(addprefix -Itools/shmlimit/,$(tool_rooms))
$(O)/tools/shmlimit/%.o $(O)/tests/cli/%.o $(O)/tests/fuzz/target/%.o: server_cflags = $(tool_inc)
$(O)/bin/shmlimit: $(tool_obj) $(global_used) $(lib_used)
	@mkdir -p $(@D)
	$(CC) $(harden_pie) $(all_ldflags) -o $@ $^ $(tool_libs)

# The folder to be copied to where PHP finds it. Its FFI reads C, but neither what is included nor what is defined.
php := $(patsubst tools/php/src/%,$(O)/php/Shmlimit/%,$(wildcard $(addprefix tools/php/src/,*.php */*.php */*/*.php))) \
	$(O)/php/Shmlimit/shmlimit.h $(O)/php/Shmlimit/shmlimit_global.h
php_extension := $(if $(shell command -v php-config),$(O)/php/shmlimit.so)

php: $(php) $(php_extension)

$(O)/php/Shmlimit/%.php: tools/php/src/%.php
	@mkdir -p $(@D)
	install -m 644 $< $@

$(O)/php/Shmlimit/shmlimit.h: include/shmlimit.h include/shmlimit_gate.h Makefile
$(O)/php/Shmlimit/shmlimit.h: php_lib := gate
$(O)/php/Shmlimit/shmlimit_global.h: include/shmlimit.h include/shmlimit_global.h Makefile
$(O)/php/Shmlimit/shmlimit_global.h: php_lib := global
$(O)/php/Shmlimit/%.h:
	@mkdir -p $(@D)
	printf '#define FFI_SCOPE "%s"\n#define FFI_LIB "libshmlimit-$(php_lib).so.$(SOVERSION)"\n' \
		"$$(echo $* | tr a-z A-Z)" >$@
	sed -E '/^#include/d; s/^#define (SHMLIMIT_[A-Z0-9_]+) +([0-9]+)u?( .*)?$$/enum { \1 = \2 }; \3/' $(filter %.h,$^) | \
		$(CC) -E -P - >>$@

$(O)/bin/shmlimit-demo: $(call obj,tools/demo) $(O)/libshmlimit.a
	@mkdir -p $(@D)
	$(CC) $(harden_pie) $(all_ldflags) -o $@ $^ -lmicrohttpd -pthread

# Modules for servers, made with what Debian ships to make modules with. Each holds the library, so that it is one
# file to install. What the servers' own headers do is not ours to warn of.
nginx_src := /usr/share/nginx/src
nginx_inc = $(patsubst %,-isystem $(O)/nginx/%,src/core src/event src/event/modules src/os/unix src/http \
	src/http/modules src/http/v2 objs)
nginx_module  := $(O)/nginx/ngx_http_shmlimit_module.so
apache_module := $(O)/apache/mod_shmlimit.so
server_obj := $(call obj,tools/server)
# With the one for many hosts, which no file of a module names; a shared gate loads it when needed.
gate_used := $(if $(SHARED),$(gate_so) $(lib_so),$(O)/libshmlimit-gate.a $(O)/libshmlimit-global.a $(O)/libshmlimit.a)
link_module = $(CC) -shared $(all_ldflags) $(stay_loaded) -Wl,--exclude-libs,ALL $(if $(SHARED),,-Wl$(comma)-u$(comma)shmlimit_global_open) -o $@ \
	$^ -Wl,--as-needed $(global_libs) $(gate_libs)
# Their functions take arguments that they need not use.
$(O)/tools/nginx/%.o $(O)/tools/apache/%.o: warn += -Wno-unused-parameter -Wno-cast-qual
$(O)/tools/nginx/%.o: server_cflags = -Itools/server $(nginx_inc)
$(O)/tools/apache/%.o: server_cflags = -fvisibility=default -Itools/server -isystem $(shell apxs -q INCLUDEDIR) \
	-isystem $(shell apxs -q APR_INCLUDEDIR) $(filter-out -D_GNU_SOURCE,$(shell apxs -q EXTRA_CPPFLAGS))

$(O)/nginx/objs/ngx_auto_config.h: tools/nginx/config
	@mkdir -p $(O)
	rm -rf $(O)/nginx && cp -r $(nginx_src) $(O)/nginx
	cd $(O)/nginx && bash -c '. ./conf_flags && ./configure "$${NGX_CONF_FLAGS[@]}" \
		--add-dynamic-module=$(CURDIR)/tools/nginx' >configure.log

$(call obj,tools/nginx): $(O)/nginx/objs/ngx_auto_config.h

# A package for Node, whose addon holds the library: to be copied, or installed by npm without a compiler.
node_addon := $(O)/node/build/Release/shmlimit.node
node := $(node_addon) $(patsubst tools/node/%,$(O)/node/%,$(wildcard $(addprefix tools/node/,package.json README.md *.js *.d.ts \
	stores/*.js stores/*.d.ts)))
$(O)/tools/node/%.o: server_cflags = -isystem $(node_inc)
$(node_addon): $(call obj,tools/node/src) $(gate_used)
	@mkdir -p $(@D)
	$(link_module)

$(O)/node/%: tools/node/%
	@mkdir -p $(@D)
	install -m 644 $< $@

# The folder to be named to Ruby by -I; the extension holds the library. Gem users build it by extconf.rb instead. What
# Ruby's headers do is not ours to warn of.
ruby_header := $(lastword $(wildcard /usr/include/ruby-*/ruby.h))
ruby_native := $(O)/ruby/shmlimit/native.so
ruby := $(patsubst tools/ruby/lib/%,$(O)/ruby/%,$(wildcard tools/ruby/lib/*.rb tools/ruby/lib/shmlimit/*.rb)) $(ruby_native)
ruby_inc = $(addprefix -isystem ,$(shell /usr/bin/ruby -rrbconfig -e 'puts RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir")'))
$(O)/tools/ruby/%.o: warn += -Wno-unused-parameter -Wno-cast-qual
$(O)/tools/ruby/%.o: server_cflags = -std=gnu11 -DHAVE_RB_EXT_RACTOR_SAFE $(ruby_inc)

$(O)/ruby/%.rb: tools/ruby/lib/%.rb
	@mkdir -p $(@D)
	install -m 644 $< $@

$(ruby_native): $(call obj,tools/ruby/ext/shmlimit) $(gate_used)
	@mkdir -p $(@D)
	$(link_module)

# What there is something installed to build with.
servers := $(if $(wildcard $(nginx_src)/configure),$(nginx_module)) $(if $(wildcard /usr/bin/apxs),$(apache_module)) \
	$(if $(node_inc),$(node)) $(if $(ruby_header),$(ruby))

servers: $(servers)
.PHONY: node ruby
node: $(node)
ruby: $(ruby)
nginx: $(nginx_module)
apache: $(apache_module)

# What nginx looks for in a module, as its configure wrote it.
$(O)/tools/nginx/modules.o: $(O)/nginx/objs/ngx_auto_config.h
	@mkdir -p $(@D)
	$(CC) -fPIC $(nginx_inc) -c -o $@ $(O)/nginx/objs/ngx_http_shmlimit_module_modules.c

$(nginx_module): $(call obj,tools/nginx) $(O)/tools/nginx/modules.o $(server_obj) $(gate_used)
	$(link_module)

$(apache_module): $(O)/tools/apache/mod_shmlimit.o $(server_obj) $(gate_used)
	@mkdir -p $(@D)
	$(link_module)

# The extension, for the PHP of this host, with the library in it, so that it is one file to install. tools/php/ext has
# what phpize needs to build it for another one.
$(O)/tools/php/ext/%.o: warn += -Wno-unused-parameter -Wno-cast-qual -Wno-undef -Wno-shadow
$(O)/tools/php/ext/%.o: server_cflags = -std=gnu11 $(patsubst -I%,-isystem %,$(shell php-config --includes)) \
	-DCOMPILE_DL_SHMLIMIT -DZEND_ENABLE_STATIC_TSRMLS_CACHE=1
$(O)/php/shmlimit.so: $(call obj,tools/php/ext) $(gate_used)
	@mkdir -p $(@D)
	$(link_module)

# Tests and benches link the library's objects, not the archive: they may call what is hidden. A test that was
# cross-built becomes a script that runs it under EMULATOR.
$(O)/tests/unit/unnamed.t: test_wrap := $(patsubst %,-Wl$(comma)--wrap=%,rule_put rule_read malloc calloc realloc posix_memalign aligned_alloc)
$(O)/tests/unit/fast.t: test_wrap := -Wl,--wrap=decide_slowly
$(O)/tests/process/failing.t: test_wrap := $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc)
$(O)/tests/%.t: $(O)/tests/%.o $(lib_obj)
	$(CC) $(all_ldflags) $(test_wrap) -o $@$(if $(EMULATOR),.bin) $^ -pthread -lm
	$(if $(EMULATOR),printf '#!/bin/sh\nexec $(EMULATOR) "$$0.bin" "$$@"\n' >$@ && chmod +x $@)

# tests/schedule has a library of its own, with points before each access to shared memory (lib/base/point.h) and the
# writers' lock under the scheduler.
points_obj := $(patsubst $(O)/%,$(O)/points/%,$(lib_obj))
$(O)/points/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(all_cflags) -DSHMLIMIT_POINTS -c -o $@ $<

$(O)/tests/schedule/%.t: $(O)/points/tests/schedule/%.o $(points_obj)
	@mkdir -p $(@D)
	$(CC) $(all_ldflags) -Wl,--wrap=segment_lock,--wrap=segment_unlock $(test_wrap) -o $@ $^

# What waits for an agent sleeps and wakes under the scheduler too.
$(O)/tests/schedule/mailbox.t: test_wrap := -Wl,--wrap=syscall,--wrap=clock_gettime,--wrap=getpid
$(O)/tests/schedule/mailbox.t: $(O)/points/lib/global/host/mailbox.o

# The command's tests in C may call whatever is in it; of the library they have what the command has.
$(O)/tests/cli/%.t: $(O)/tests/cli/%.o $(filter-out %/main.o,$(tool_obj)) \
		$(O)/libshmlimit-global.a $(O)/libshmlimit.a
	$(CC) $(all_ldflags) -o $@ $^ $(tool_libs) -pthread

$(O)/tests/global/%.t: $(O)/tests/global/%.o $(global_obj) $(lib_obj)
	$(CC) $(all_ldflags) -o $@ $^ $(global_libs) -pthread

# It is in that group since ThreadSanitizer runs there.
$(O)/tests/thread/global.t: $(O)/tests/thread/global.o $(global_obj) $(lib_obj)
	$(CC) $(all_ldflags) -o $@ $^ $(global_libs) -pthread

# With the library for many hosts, which the gate loads in other programs.
$(O)/tests/gate/%.o: server_cflags = -Ilib/gate
$(O)/tests/gate/%.t: $(O)/tests/gate/%.o $(gate_obj) $(O)/libshmlimit-global.a $(lib_obj)
	$(CC) $(all_ldflags) -Wl,-u,shmlimit_global_open -o $@ $^ $(global_libs) $(gate_libs)

# It loads and unloads the libraries, so it has nothing of them itself.
$(O)/tests/gate/unload.t: $(O)/tests/gate/unload.o | $(gate_so) $(global_so)
	$(CC) $(all_ldflags) -o $@ $^ -ldl -pthread

$(O)/bench/agent $(O)/bench/global $(O)/bench/global_sim: $(global_obj)
# Its hosts are on a clock that is made up, and so is what is between them and their backend.
$(O)/bench/global_sim: bench_wrap := -Wl,--wrap=clock_gettime,--wrap=clock_nanosleep,--wrap=getrandom,--wrap=cluster_lease
$(O)/bench/gate: $(gate_obj)
$(O)/bench/gate: bench_libs := $(gate_libs)
$(O)/bench/%: $(O)/bench/%.o $(bench_obj) $(lib_obj)
	$(CC) $(all_ldflags) $(bench_wrap) -o $@ $(filter %.o,$^) -Wl,--as-needed $(global_libs) -lsqlite3 \
		-llua5.1 $(bench_libs) -pthread -lm

# What libFuzzer or AFL++ feeds: some may call what is hidden in the library, some what is hidden in the command.
fuzzed := $(patsubst tests/fuzz/target/%.c,$(O)/fuzz/%,$(wildcard tests/fuzz/target/*.c))
fuzzed_command := $(patsubst %,$(O)/fuzz/%,command log_line numbers rules_file)
$(O)/fuzz/command: fuzz_wrap := -Wl,--wrap=plot_check,--wrap=clock_nanosleep
$(fuzzed_command): $(O)/fuzz/main.o $(filter-out %/main.o,$(tool_obj)) $(O)/libshmlimit-global.a \
		$(O)/libshmlimit.a
$(filter-out $(fuzzed_command),$(fuzzed)): $(lib_obj)
$(O)/fuzz/spec: $(gate_obj)
$(O)/fuzz/url: $(O)/lib/global/redis/url.o
$(O)/fuzz/mailbox: $(O)/lib/global/host/mailbox.o
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
with_group = $(if $(filter cli crash global,$(1)),$(all_command)) \
	$(if $(filter build,$(1)),php $(if $(call lacking,$(for_command) demo bench),,$(benches))) \
	$(if $(filter fuzz,$(1)),$(fuzzed)) $(if $(filter server,$(1)),$(all_command) php $(servers)) $(if $(filter schedule,$(1)),lib)
# Groups of which no test can be built.
left_out = $(if $(call lacking,$(for_command)),cli crash global server build fuzz) $(if $(call lacking,global gate),gate server fuzz)

tests: $(foreach g,$(filter-out $(left_out),$(GROUPS)),$(call t,$(g)) $(call with_group,$(g)))
	$(if $(filter $(left_out),$(GROUPS)),@echo 'left out: tests of $(filter $(left_out),$(GROUPS)); they need \
		$(call lacking,$(for_command) gate)')

# As many at a time as there are processors, unless make was given -j.
jobs = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# Those that take long first. A third of the rounds of what is random: make check has all.
test: GROUPS := cli process thread unit
test: export TEST_SCALE ?= 0.3
test:
	@command -v prove >/dev/null || { echo 'make test needs prove: Debian has it in perl' >&2; exit 1; }
	@$(MAKE) --no-print-directory $(jobs) -s GROUPS='$(GROUPS)' tests
	@prove -j$$(nproc) --exec '' $(foreach g,$(filter-out $(left_out),$(GROUPS)),$(call t,$(g)))

# As T=unit/take; more than one is several. What they print is shown as it is.
t:
	@test -n '$(T)' || { echo 'usage: make t T=unit/take' >&2; exit 2; }
	@$(MAKE) --no-print-directory $(jobs) -s $(foreach t,$(T),$(O)/tests/$(t).t) \
		$(call with_group,$(foreach t,$(T),$(firstword $(subst /, ,$(t)))))
	@rc=0; for t in $(T); do $(O)/tests/$$t.t || rc=1; done; exit $$rc

# All but what php's generator wrote; below tools/nginx and tools/apache it changes nothing. Version 14, as in Debian 12.
format:
	@find $(rooms) -name '*.[ch]' ! -name '*_arginfo.h' -exec clang-format -i {} +

format-check:
	@find $(rooms) -name '*.[ch]' ! -name '*_arginfo.h' -exec clang-format --dry-run --Werror {} +
format format-check: rooms := bench include lib tests tools

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
builds       := gcc clang gcc-address clang-address clang-thread clang-fuzz aarch64 $(if $(FULL),gcc-thread)
with_gcc           := CC=gcc GROUPS='model proof crash torture process schedule server cli global build mutant thread unit gate'
with_clang         := CC=clang GROUPS='unit process thread'
with_gcc-address   := CC=gcc SAN=address GROUPS='process cli gate $(if $(FULL),unit)'
with_clang-address := CC=clang SAN=address GROUPS='unit thread'
with_gcc-thread    := CC=gcc SAN=thread GROUPS='unit thread'
with_clang-thread  := CC=clang SAN=thread GROUPS='unit thread'
with_clang-fuzz    := CC=clang SAN=fuzz GROUPS=fuzz
with_aarch64       := CC=aarch64-linux-gnu-gcc OBJCOPY=aarch64-linux-gnu-objcopy AR=aarch64-linux-gnu-ar \
	LDFLAGS=-static FOREIGN=$(O)/arm64 CPPFLAGS=-DUNDER_EMULATOR EMULATOR=qemu-aarch64 GROUPS=unit

# Which of them this machine can do: with compilers, and what their sanitizers need, or else without.
can = $(shell printf 'int main(void) { return 0; }' | $(1) -x c -o /dev/null - 2>/dev/null && echo yes)
can_build = gcc gcc-address gcc-thread $(if $(call can,clang),clang) \
	$(if $(call can,clang -fsanitize=address),clang-address clang-thread clang-fuzz) \
	$(if $(call can,aarch64-linux-gnu-gcc),$(if $(wildcard $(O)/arm64/.unpacked),aarch64))

check:
	@tools/need.sh $(for_check)
	@$(if $(filter no,$(INSTALL)),,tools/foreign.sh arm64 $(O)/arm64 libck-dev systemtap-sdt-dev)
	@$(MAKE) --no-print-directory check-installed

# WHY NOT written out below: make -n runs each line that says MAKE, and so would run all tests.
lister := $(MAKE) --no-print-directory -s
builds_here = $(filter $(can_build),$(builds))
check-installed:
	@$(foreach b,$(filter-out $(builds_here),$(builds)),echo '== left out: $(b): no compiler, or no sanitizers' &&) true
	@$(foreach b,$(builds_here),echo '== building $(b)' && \
		$(MAKE) --no-print-directory $(jobs) -s O=$(O)/$(b) WERROR=1 $(with_$(b)) tests && ) true
	@tests/prove.sh $(foreach b,$(builds_here),$$($(lister) O=$(O)/$(b) $(with_$(b)) list))

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

# Everything, and the long runs: hours.
check-full:
	@MODEL_FULL=1 CRASH_FULL=1 PROOF_FULL=1 TEST_SCALE=4 $(MAKE) --no-print-directory check FULL=1
	@$(MAKE) --no-print-directory torture SECONDS=300
	@$(MAKE) --no-print-directory schedules
	@$(MAKE) --no-print-directory mutants
	@$(MAKE) --no-print-directory memcheck
	@$(MAKE) --no-print-directory coverage

mutants:
	@tools/need.sh $(for_build) 'make mutants:' perl
	@tests/mutant/mutant.sh $(O)

list:
	@echo $(foreach g,$(filter-out $(left_out),$(GROUPS)),$(call t,$(g)))

# What of the libraries is built.
libraries := libshmlimit $(if $(call lacking,global),,libshmlimit-global) $(if $(call lacking,gate),,libshmlimit-gate)
install: all
	install -d $(addprefix $(DESTDIR),$(bindir) $(includedir) $(libdir)/pkgconfig $(mandir)/man1 $(mandir)/man3 $(mandir)/man7 \
		$(completionsdir) $(zshdir) $(fishdir) $(unitdir))
	$(if $(call lacking,$(for_command)),,install -m 755 $(O)/bin/shmlimit $(DESTDIR)$(bindir)/)
	install -m 644 include/shmlimit.h include/shmlimit_global.h include/shmlimit_gate.h $(DESTDIR)$(includedir)/
	install -m 644 $(foreach l,$(libraries),$(O)/$(l).a $(O)/$(l).so.$(VERSION)) $(DESTDIR)$(libdir)/
	for l in $(libraries); do \
		ln -sf $$l.so.$(VERSION) $(DESTDIR)$(libdir)/$$l.so.$(SOVERSION) && \
		ln -sf $$l.so.$(SOVERSION) $(DESTDIR)$(libdir)/$$l.so || exit 1; done
	printf '%s\n' 'prefix=$(prefix)' 'includedir=$(includedir)' 'libdir=$(libdir)' '' 'Name: shmlimit' \
		'Description: one rate limit for all processes of a host' 'Version: $(VERSION)' \
		'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lshmlimit' >$(DESTDIR)$(libdir)/pkgconfig/shmlimit.pc
	$(if $(call lacking,global),,printf '%s\n' 'prefix=$(prefix)' 'includedir=$(includedir)' 'libdir=$(libdir)' '' 'Name: shmlimit-global' \
		'Description: one rate limit for many hosts, through Redis or Valkey' 'Version: $(VERSION)' \
		'Requires: shmlimit' 'Requires.private: hiredis libssl' \
		'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lshmlimit-global' >$(DESTDIR)$(libdir)/pkgconfig/shmlimit-global.pc)
	$(if $(call lacking,gate),,printf '%s\n' 'prefix=$(prefix)' 'includedir=$(includedir)' 'libdir=$(libdir)' '' 'Name: shmlimit-gate' \
		'Description: the limits of a server or an application, in one call per request' 'Version: $(VERSION)' \
		'Requires: shmlimit' 'Requires.private: liburcu-bp libcrypto' \
		'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lshmlimit-gate' >$(DESTDIR)$(libdir)/pkgconfig/shmlimit-gate.pc)
	install -m 644 $(man1) $(DESTDIR)$(mandir)/man1/
	install -m 644 $(man3) $(DESTDIR)$(mandir)/man3/
	$(foreach h,$(headers),for f in $(call functions,$(h)); do echo '.so man3/$(h).3' >$(DESTDIR)$(mandir)/man3/$$f.3 || exit 1; done &&) true
	install -m 644 $(man7) $(DESTDIR)$(mandir)/man7/
	install -m 644 tools/shmlimit/completion.bash $(DESTDIR)$(completionsdir)/shmlimit
	sed 's|/usr/share/bash-completion/completions|$(completionsdir)|' tools/shmlimit/completion.zsh >$(DESTDIR)$(zshdir)/_shmlimit
	sed 's|/usr/share/bash-completion/completions|$(completionsdir)|' tools/shmlimit/completion.fish \
		>$(DESTDIR)$(fishdir)/shmlimit.fish
	$(foreach u,$(units),sed 's|/usr/bin/|$(bindir)/|' $(u) >$(DESTDIR)$(unitdir)/$(notdir $(u)) &&) true

uninstall:
	rm -f $(addprefix $(DESTDIR),$(bindir)/shmlimit $(includedir)/shmlimit.h $(includedir)/shmlimit_global.h \
		$(includedir)/shmlimit_gate.h $(foreach l,libshmlimit libshmlimit-global libshmlimit-gate,$(addprefix $(libdir)/$(l),.a .so .so.$(SOVERSION) .so.$(VERSION))) \
		$(libdir)/pkgconfig/shmlimit.pc $(libdir)/pkgconfig/shmlimit-global.pc $(libdir)/pkgconfig/shmlimit-gate.pc \
		$(mandir)/man1/shmlimit.1 $(patsubst %,$(mandir)/man3/%.3,$(headers) $(foreach h,$(headers),$(call functions,$(h)))) \
		$(mandir)/man7/shmlimit.7 \
		$(mandir)/man7/shmlimit-security.7 \
		$(completionsdir)/shmlimit $(zshdir)/_shmlimit $(fishdir)/shmlimit.fish $(addprefix $(unitdir)/,$(notdir $(units))))

# What is rendered: the manual pages and every Markdown file that a reader is led to.
pages := $(man1) $(man3) $(man7) $(wildcard *.md lib/README.md lib/doc/*.md tools/*/README.md tools/*/*.md tests/*.md \
	tests/mutant/README.md bench/README.md bench/results/*/report.md)
html:
	@tools/html.sh $(O)/html $(sort $(pages))

# The packages' own build is out of O, in a copy of the sources that has debian/ at its top. Their maintainer is who
# builds them: DEBFULLNAME and DEBEMAIL, as Debian's tools have it; else nobody who could be written to.
deb_src := $(O)/deb/shmlimit-$(VERSION)
deb:
	@tools/need.sh $(for_deb)
	rm -rf $(O)/deb && mkdir -p $(deb_src)
	cp -r Makefile include lib tools tests bench README.md LICENSE CONTRIBUTING.md CHANGELOG.md SECURITY.md $(deb_src)
	cp -r tools/debian $(deb_src)/debian
	$(if $(DEBEMAIL),sed -i 's/the shmlimit authors <.*@localhost>/$(DEBFULLNAME) <$(DEBEMAIL)>/' \
		$(deb_src)/debian/control $(deb_src)/debian/changelog)
	cd $(deb_src) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		dpkg-buildpackage -b -uc >../build.log 2>&1 || { tail -n 20 ../build.log; exit 1; }
	rm -rf $(deb_src)

clean:
	rm -rf $(O)

-include $(shell find $(O) -name '*.d' 2>/dev/null)
