# shmlimit: one rate limit for all processes of a host. `make help` says what there is to make.

O       ?= build
comma := ,
space := $() $()
CC       = gcc
AR       = ar
OBJCOPY  = objcopy
CFLAGS   = -O3 -g
prefix     ?= $(or $(PREFIX),/usr/local)
bindir     ?= $(prefix)/bin
includedir ?= $(prefix)/include
libdir     ?= $(prefix)/lib
mandir     ?= $(prefix)/share/man
completionsdir ?= $(prefix)/share/bash-completion/completions
zshdir     ?= $(prefix)/share/zsh/site-functions
fishdir    ?= $(prefix)/share/fish/vendor_completions.d
unitdir    ?= $(prefix)/lib/systemd/system

# Make splits names at blanks, and so do pkg-config and systemd. DESTDIR may have them.
$(foreach v,O prefix bindir includedir libdir mandir completionsdir zshdir fishdir unitdir, \
	$(if $(word 2,$($(v))),$(error $(v)=$($(v)): a path without blanks is needed)))

VERSION   := $(shell sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' include/shmlimit.h)
# The ABI changes with the first number, and only with it.
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

include tools/project.mk
include tools/deps.mk

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
# Without a compiler, whose machine is not known then, all of them. What needs no object says `| $(no_compiler)`.
no_compiler := $(if $(MACHINE),,lacking)
compiler := $(firstword $(filter-out ccache,$(CC)))
lacks := $(if $(no_compiler),lib:$(or $(need_compiler_$(compiler)),$(compiler)) \
	$(foreach w,lib global gate command demo bench,$(addprefix $(w):,$(call packages,$(w)))),$(shell printf '%s\n' $(foreach w,lib global gate command demo bench,$(foreach h,$(headers_$(w)), \
	'$(hash)if !__has_include(<$(firstword $(subst :, ,$(h)))>)' '$(w):$(call package,$(h))' '$(hash)endif')) | \
	$(CC) $(deps_cflags) $(CPPFLAGS) $(CFLAGS) -E -P - 2>/dev/null))
lacking = $(strip $(foreach w,$(1),$(patsubst $(w):%,%,$(filter $(w):%,$(lacks)))))
for_command := lib command

# What is built is hardened as Debian's packages are. WHY NOT with a sanitizer: it checks more, and has its own way to
# see what FORTIFY_SOURCE replaces. FORTIFY_SOURCE needs a compiler that optimizes, and is the builder's where it is set.
# A compiler that does not know a flag, on its machine, goes without. The check of the stack costs a decision 1.1 ns of
# 47 (bench/README.md). WHY NOT leave it out there: the packages' builds have it everywhere, and 2 % is not worth a rule.
# Of -fcf-protection each object has the marks; what is linked has them where the C library's crti.o, crtn.o and Scrt1.o
# do, which those of Debian 12 do not.
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
lib_rooms  := base segment algorithm $(patsubst lib/%/,%,$(sort $(wildcard lib/algorithm/*/))) table decide save api
tool_rooms := cmd text option rules inspect metrics replay top nft
all_cflags = -std=c11 -D_GNU_SOURCE -Iinclude -Ilib $(addprefix -Ilib/,$(lib_rooms)) $(room_flags) $(arch_$(ARCH)) $(deps_cflags) $(warn) \
	$(harden_cflags) $(san_$(SAN)) -fPIC -fvisibility=hidden -MMD -MP $(server_cflags) $(CPPFLAGS) $(CFLAGS)
# For what starts threads, or has functions that the C library calls when a thread ends or a process forks. It stays
# loaded when its host unloads it, as a plug-in's host does while threads live that have used it.
stay_loaded := -Wl,-z,nodelete
# BUNDLE=1: to be installed in one folder, wherever that is, with liburcu beside it and all else within (tools/bundles.mk).
bundle_ldflags := $(if $(BUNDLE),-s -Wl$(comma)-rpath$(comma)'$$ORIGIN' -Wl$(comma)--gc-sections -Wl$(comma)--exclude-libs$(comma)ALL)
all_ldflags = $(harden_ldflags) $(san_$(SAN)) $(bundle_ldflags) $(LDFLAGS)

obj = $(patsubst %.c,$(O)/%.o,$(wildcard $(1)/*.c))
# The tests of a group, whose folder is in tests or is that of an annex. An annex can have tests of a group of the core, too;
# CORE=yes leaves these out. What the tests of a group share in shell, if they do, has the group's name.
tests_of = $(firstword $(patsubst %,%/tests,$(filter %/$(1),$(annexes))) tests/$(1)) $(if $(CORE),,$(annexes:%=%/tests/$(1)))
t = $(foreach f,$(call tests_of,$(1)),$(patsubst $(f)/%.c,$(O)/tests/$(1)/%.t,$(wildcard $(f)/*.c)) \
	$(patsubst $(f)/%.sh,$(O)/tests/$(1)/%.t,$(filter-out %/$(1).sh,$(wildcard $(f)/*.sh))))

lib_obj := $(foreach r,$(lib_rooms),$(call obj,lib/$(r)))
lib_so  := $(O)/libshmlimit.so.$(VERSION)
# The gate, in front of servers and applications, is a library of its own: only it has libcrypto. It loads the one for many
# hosts when needed.
gate_obj := $(call obj,lib/gate)
# It copies structures, reads addresses and writes fields as the library does, by copies of the same files.
# What is known of algorithms without deciding.
traits_obj := $(patsubst %.c,$(O)/%.o,$(wildcard lib/algorithm/traits.c lib/algorithm/*/*_traits.c))
gate_copies := $(addprefix $(O)/lib/base/,sized.o address.o duration.o decimal.o field_text.o) $(traits_obj)
gate_so  := $(O)/libshmlimit-gate.so.$(VERSION)
gate_libs := -Wl,--as-needed -lurcu-bp -lurcu-common $(if $(BUNDLE),-l:libcrypto.a,-lcrypto) -ldl -pthread
# What a module holds, so that it is one file to install.
gate_used = $(if $(SHARED),$(gate_so) $(lib_so),$(O)/libshmlimit-gate.a $(global_a) $(O)/libshmlimit.a)
link_module = $(CC) -shared $(all_ldflags) $(stay_loaded) -Wl,--exclude-libs,ALL $(if $(SHARED),,$(if $(global_a),-Wl$(comma)-u$(comma)shmlimit_global_open)) \
	-o $@ $^ -Wl,--as-needed $(global_libs) $(gate_libs)
bench_obj := $(call obj,bench/kit) $(call obj,bench/peers)
# What the command and the servers' modules are linked with; a distribution that ships the library has SHARED=1.
lib_used := $(if $(SHARED),$(lib_so),$(O)/libshmlimit.a)
benches := $(patsubst %.c,$(O)/%,$(wildcard bench/*.c))
man1    := tools/shmlimit/shmlimit.1
man3    := $(addprefix $(O)/man/,shmlimit.3 shmlimit_gate.3)
man7    := lib/shmlimit.7 lib/shmlimit-security.7
# A page of section 3 is made of the headers of its library, and gets a link from each function that they declare.
headers   = $(basename $(notdir $(man3)))
headers_of = $(wildcard include/$(1).h $(if $(filter shmlimit,$(1)),include/shmlimit_lease.h))
functions = ${shell sed -nE 's/^[a-z].*[ *](shmlimit_[a-z_]+)\(.*/\1/p' $(call headers_of,$(1))}
units   := $(wildcard tools/systemd/*.service)

.PHONY: all lib lacking packages versioned html install uninstall deb dist clean help
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

include tools/annexes.mk

# The library for one host needs one package. What lacks others is left out, and said.
all: lib $(if $(call lacking,$(for_command)),,$(O)/bin/shmlimit)
	$(if $(call lacking,global),@echo 'not built: the library for many hosts; it needs $(call lacking,global)')
	$(if $(call lacking,gate),@echo 'not built: the library for servers and applications; it needs $(call lacking,gate)')
	$(if $(call lacking,$(for_command)),@echo 'not built: the command; it needs $(call lacking,$(for_command))')

lacking:
	@echo 'the library needs $(call lacking,lib)' >&2; INSTALL=ask tools/need.sh $(for_build); exit 1

# On Debian. Goals that need more install that by themselves.
packages:
	@tools/need.sh $(for_build)

# Where git cannot tell the version, the goal fails before it installs or makes anything. A missing git may be installed.
versioned:
	@! command -v git >/dev/null || tools/version.sh file >/dev/null

help::
	@echo 'make              the library and the command, in O=$(O)'
	@echo 'make packages     install what make needs, on Debian: as root, or by sudo'
	@echo 'make install      to prefix=$(prefix), below DESTDIR; also uninstall'
	@echo 'make deb          Debian packages of all of it, in $(O)/deb (installs missing packages); DEBFULLNAME= DEBEMAIL='
	@echo 'make dist         the sources of this commit as a tarball with checksums, in $(O)/dist: the same bytes wherever it is made'
	@echo 'make html         the documentation, in $(O)/html; needs mandoc and lowdown'
	@echo 'make clean        remove O=$(O)'
	@echo 'make compile_commands.json     for clangd and other tools'
	@echo 'Variables: O= CC= CFLAGS= SAN=address|thread WERROR=1 prefix= DESTDIR='

# For clangd and other tools: how each C file of the libraries and of the command is compiled.
compile_commands.json: Makefile
	@for c in $(patsubst $(O)/%.o,%.c,$(lib_obj) $(global_obj) $(gate_obj) $(tool_obj)); do \
		printf '%s{"directory": "%s", "file": "%s", "command": "%s"}' "$$comma" '$(CURDIR)' "$$c" \
			"$(CC) $(all_cflags) $(tool_inc) -Ilib/gate -c $$c"; comma=',\n'; \
	done | { printf '[\n'; sed 's/\\n/\n/g'; printf '\n]\n'; } >$@

lib: $(O)/libshmlimit.a $(lib_so) $(if $(call lacking,gate),,$(O)/libshmlimit-gate.a $(gate_so))

$(O)/%.o: %.c Makefile | $(if $(call lacking,lib),lacking)
	@mkdir -p $(@D)
	$(CC) $(all_cflags) -c -o $@ $<

$(O)/libshmlimit.a: $(lib_obj)
$(O)/libshmlimit-gate.a: $(gate_obj) $(gate_copies)
# One relocatable object with the hidden names made local: no internal name can clash in a static link.
$(O)/libshmlimit.a $(O)/libshmlimit-gate.a $(global_a):
	@rm -f $@
	$(CC) -r -nostdlib -o $(@:.a=.o) $^
	$(OBJCOPY) --localize-hidden $(@:.a=.o)
	$(AR) rcs $@ $(@:.a=.o)

$(lib_so): $(lib_obj) lib/shmlimit.map
# It may register what a fork calls: see lib/segment/registry.c.
$(lib_so): private own_libs := $(stay_loaded)
$(gate_so): $(gate_obj) $(gate_copies) $(lib_so) lib/gate/shmlimit_gate.map
$(gate_so): private own_libs := $(stay_loaded) $(gate_libs)
$(lib_so) $(global_so) $(gate_so):
	$(CC) -shared -Wl,-soname,$(@F:.$(VERSION)=.$(SOVERSION)) -Wl,--version-script=$(filter %.map,$^) \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(all_ldflags) -o $@ $(filter-out %.map,$^) $(own_libs)
	ln -sf $(@F) $(@:.$(VERSION)=.$(SOVERSION))
	ln -sf $(@F:.$(VERSION)=.$(SOVERSION)) $(@:.$(VERSION)=)
# The name that a linker looks for, which links to the library and is made beside it.
$(O)/%.so: $(O)/%.so.$(VERSION) ;

tool_libs := -Wl,--as-needed $(global_libs) -ljansson -linih -lz -lncursesw -ltinfo
# With copies of the keyed hash, for what strangers fill, and of the readers of addresses, numbers and times.
tool_obj := $(call obj,tools/shmlimit) $(foreach r,$(tool_rooms),$(call obj,tools/shmlimit/$(r))) \
	$(patsubst %,$(O)/lib/base/%.o,hash address decimal duration fraction limit_text nearest zone zone_data) $(traits_obj)
tool_inc := -Itools/shmlimit $(addprefix -Itools/shmlimit/,$(tool_rooms))
$(O)/tools/shmlimit/%.o $(O)/tests/cli/%.o $(O)/tests/fuzz/target/%.o: server_cflags = $(tool_inc)
$(O)/bin/shmlimit: $(tool_obj) $(filter %.a %.so.$(VERSION),$(global_used)) $(lib_used)
	@mkdir -p $(@D)
	$(CC) $(harden_pie) $(all_ldflags) -o $@ $(filter %.o,$^) $(global_used) $(lib_used) $(tool_libs)

include tools/servers.mk
include tools/bundles.mk

include tests/tests.mk

# The libraries, and what pkg-config says of those that are built.
library_names += libshmlimit libshmlimit-gate
title_libshmlimit := one rate limit for all processes of a host
title_libshmlimit-gate := the limits of a server or an application, in one call per request
requires_libshmlimit-gate := shmlimit
private_libshmlimit-gate := liburcu-bp libcrypto
libraries := $(if $(call lacking,gate),$(filter-out libshmlimit-gate,$(library_names)),$(library_names))
pc = printf '%s\n' 'prefix=$(prefix)' 'includedir=$(includedir)' 'libdir=$(libdir)' '' 'Name: $(1:lib%=%)' 'Description: $(title_$(1))' \
	'Version: $(VERSION)' $(if $(requires_$(1)),'Requires: $(requires_$(1))' 'Requires.private: $(private_$(1))') \
	'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -l$(1:lib%=%)' >"$(DESTDIR)$(libdir)"/pkgconfig/$(1:lib%=%).pc
vpath %.3.in lib lib/gate $(annexes)
$(man3): $(O)/man/%.3: %.3.in tools/man3.awk tools/header.awk $(wildcard include/*.h)
	@mkdir -p $(@D)
	awk -f tools/man3.awk -f tools/header.awk $(call headers_of,$*) $< >$@

# What root makes in O= is given to its owner or, if that is root, to that of the folder that it is in, which is to make clean.
owner = $$(stat -c %u:%g $(O) | grep -v ^0: || stat -c %u:%g $(dir $(O:%/=%)))
below = $(foreach f,$(1),"$(DESTDIR)$(f)")
install: all $(man3)
	install -d $(call below,$(bindir) $(includedir) $(libdir)/pkgconfig $(mandir)/man1 $(mandir)/man3 $(mandir)/man7 \
		$(completionsdir) $(zshdir) $(fishdir) $(unitdir))
	$(if $(call lacking,$(for_command)),,install -m 755 $(O)/bin/shmlimit "$(DESTDIR)$(bindir)"/)
	install -m 644 include/*.h "$(DESTDIR)$(includedir)"/
	install -m 644 $(foreach l,$(libraries),$(O)/$(l).a $(O)/$(l).so.$(VERSION)) "$(DESTDIR)$(libdir)"/
	for l in $(libraries); do \
		ln -sf $$l.so.$(VERSION) "$(DESTDIR)$(libdir)"/$$l.so.$(SOVERSION) && \
		ln -sf $$l.so.$(SOVERSION) "$(DESTDIR)$(libdir)"/$$l.so || exit 1; done
	$(foreach l,$(libraries),$(call pc,$(l)) &&) true
	install -m 644 $(man1) "$(DESTDIR)$(mandir)/man1"/
	install -m 644 $(man3) "$(DESTDIR)$(mandir)/man3"/
	$(foreach h,$(headers),for f in $(call functions,$(h)); do echo '.so man3/$(h).3' >"$(DESTDIR)$(mandir)/man3"/$$f.3 || exit 1; done &&) true
	install -m 644 $(man7) "$(DESTDIR)$(mandir)/man7"/
	install -m 644 tools/shmlimit/completion.bash "$(DESTDIR)$(completionsdir)"/shmlimit
	sed 's|/usr/share/bash-completion/completions|$(completionsdir)|' tools/shmlimit/completion.zsh >"$(DESTDIR)$(zshdir)"/_shmlimit
	sed 's|/usr/share/bash-completion/completions|$(completionsdir)|' tools/shmlimit/completion.fish \
		>"$(DESTDIR)$(fishdir)"/shmlimit.fish
	$(foreach u,$(units),sed 's|/usr/bin/|$(bindir)/|' $(u) >"$(DESTDIR)$(unitdir)"/$(notdir $(u)) &&) true
	$(refresh_loader)
	@[ "$$(id -u)" -ne 0 ] || chown -Rh $(owner) $(O) 2>/dev/null || :

# Programs find a library in a folder that the loader knows by its cache. Where it does not know the folder, that is printed.
refresh_loader = @$(if $(DESTDIR),true,PATH=$$PATH:/usr/sbin:/sbin; command -v ldconfig >/dev/null || exit 0; \
	[ "$$(id -u)" -ne 0 ] || ldconfig; ldconfig -p | grep -qF '=> $(libdir)/libshmlimit.so' || [ ! -e $(libdir)/libshmlimit.so ] || \
	echo 'the loader does not find the libraries in $(libdir): run ldconfig as root, or set LD_LIBRARY_PATH=$(libdir)')

uninstall:
	rm -f $(call below,$(bindir)/shmlimit $(addprefix $(includedir)/,$(notdir $(wildcard include/*.h))) \
		$(foreach l,$(library_names),$(libdir)/pkgconfig/$(l:lib%=%).pc $(addprefix $(libdir)/$(l),.a .so .so.$(SOVERSION) .so.$(VERSION))) \
		$(mandir)/man1/shmlimit.1 $(patsubst %,$(mandir)/man3/%.3,$(headers) $(foreach h,$(headers),$(call functions,$(h)))) \
		$(mandir)/man7/shmlimit.7 \
		$(mandir)/man7/shmlimit-security.7 \
		$(completionsdir)/shmlimit $(zshdir)/_shmlimit $(fishdir)/shmlimit.fish $(addprefix $(unitdir)/,$(notdir $(units))))
	$(refresh_loader)

# What is rendered: the manual pages and every Markdown file that a reader is led to.
pages := $(man1) $(man3) $(man7) $(wildcard *.md lib/*.md lib/doc/*.md lib/*/README.md tools/*/README.md tools/*/*.md tests/*.md \
	tests/mutant/README.md bench/README.md bench/results/*/report.md)
html: $(man3)
	@tools/html.sh $(O)/html $(sort $(pages))

# The packages' own build is out of O, in a copy of the sources that has debian/ at its top. Their maintainer is who
# builds them, else tools/project.mk's; else nobody who could be written to.
deb_src := $(O)/deb/shmlimit-$(VERSION)
deb: versioned debian
	@tools/need.sh $(for_deb)
	rm -rf $(O)/deb && mkdir -p $(deb_src)
	cp -r Makefile include lib tools tests bench README.md LICENSE CONTRIBUTING.md CHANGELOG.md SECURITY.md $(deb_src)
	mv $(O)/debian $(deb_src)/debian
	version=$$(tools/version.sh deb) && sed -i "1s/(.*)/($$version)/" $(deb_src)/debian/changelog
	$(if $(HOMEPAGE),sed -i 's|^Standards-Version|Homepage: $(HOMEPAGE)\n&|' $(deb_src)/debian/control)
	$(if $(DEBEMAIL),sed -i 's/the shmlimit authors <.*@localhost>/$(DEBFULLNAME) <$(DEBEMAIL)>/' \
		$(deb_src)/debian/control $(deb_src)/debian/changelog)
	cd $(deb_src) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		dpkg-buildpackage -b -uc >../build.log 2>&1 || { tail -n 20 ../build.log; exit 1; }
	rm -rf $(deb_src)

# Names, owners, times and the order are the commit's, and gzip adds none of its own.
git := git -c safe.directory='*'
dist:
	@tools/version.sh file >/dev/null
	@changed=$$($(git) status --porcelain) && [ -z "$$changed" ] || \
		{ echo 'make dist packs a commit: commit or remove what git status shows' >&2; exit 1; }
	@version=$$(tools/version.sh plain) && { [ "$$version" != '$(VERSION)' ] || tools/release.sh check; }
	@rm -rf $(O)/dist && mkdir -p $(O)/dist
	@set -e; file=$$(tools/version.sh file); name=shmlimit-$$(tools/version.sh plain); cd $(O)/dist; \
	$(git) -C '$(CURDIR)' -c tar.umask=0022 archive --format=tar --prefix=$$name/ --add-virtual-file="$$name/.tarball-version:$$file" \
		HEAD >$$name.tar; gzip -n -9 $$name.tar; sha256sum $$name.tar.gz >SHA256SUMS; cat SHA256SUMS

clean:
	rm -rf $(O)

-include $(shell find $(O) -path $(O)/release -prune -o -name '*.d' -print 2>/dev/null)
