# annexes.mk: the annexes, each a folder that holds its code, its tests, its page, its packaging and FOLDER/NAME.mk. This list
# is all that the rest of the project knows of them: an annex that is not there is left out.
#
# NAME.mk may set, and the rest of the project uses:
#
#	built_NAME           what `make build-NAME` makes, as far as this machine has what is needed
#	lacks_NAME           those that are missing for what it does not make
#	need_NAME            those that its tests need
#	need_deb_NAME, need_bundles_NAME
#	                     those that `make deb` and `make bundles` need for it
#	versions_NAME        the files that have the project's version (tools/release.sh)
#
# Its tests are in FOLDER/tests. As a group of tests they have its name: make t T=python/limit. What is in FOLDER/tests/GROUP
# belongs to this group of the core's, and is left out by make test. FOLDER/debian has its packages:
# the files that debhelper reads, control with their paragraphs, build-depends, and rules (included by tools/debian/rules).
#
# SPDX-License-Identifier: BSD-2-Clause

annexes := $(wildcard $(if $(call lacking,global),,lib/global) tools/python tools/php tools/node tools/ruby tools/lua)
annex_names := $(notdir $(annexes))

.PHONY: $(annex_names) $(annex_names:%=build-%) build-annexes debian
help::
	@echo 'make NAME         an annex, built and tested: $(annex_names)'
	@echo 'make build-NAME   an annex, built: in $(O)/NAME'

# GROUP, FOLDER: its tests. In C they include what is in tests by a path from there.
define annex_tests
$(O)/tests/$(1)/%.t: $(2)/%.sh $(O)/tests/tap.sh
	@mkdir -p $$(@D)
	install -m 755 $$< $$@
$(O)/tests/$(1)/%.o: $(2)/%.c Makefile
	@mkdir -p $$(@D)
	$$(CC) $$(all_cflags) -Itests -c -o $$@ $$<
$(O)/points/tests/$(1)/%.o: $(2)/%.c Makefile
	@mkdir -p $$(@D)
	$$(CC) $$(all_cflags) -Itests -DSHMLIMIT_POINTS -c -o $$@ $$<
endef

define annex_rules
include $(1)/$(notdir $(1)).mk
build-$(notdir $(1)): $$(built_$(notdir $(1)))
	@$$(if $$(lacks_$(notdir $(1))),echo 'not built: what needs $$(lacks_$(notdir $(1)))' >&2; INSTALL=ask tools/need.sh 'make $$@:' $$(lacks_$(notdir $(1))); exit 1,:)
$(call annex_tests,$(notdir $(1)),$(1)/tests)
$(foreach d,$(patsubst %/.,%,$(wildcard $(1)/tests/*/. $(1)/tests/*/*/.)),$(call annex_tests,$(d:$(1)/tests/%=%),$(d))
)
endef
$(foreach a,$(annexes),$(eval $(call annex_rules,$(a))))

$(annex_names):
	@$(MAKE) --no-print-directory test GROUPS=$@

built_annexes = $(foreach a,$(annex_names),$(built_$(a)))
build-annexes: $(built_annexes)

# What dpkg-buildpackage reads, of the core and of all annexes, in $(O)/debian.
debian:
	rm -rf $(O)/debian && mkdir -p $(O) && cp -r tools/debian $(O)/debian
	for a in $(patsubst %/debian,%,$(wildcard $(annexes:%=%/debian))); do \
		find $$a/debian -type f ! -name control ! -name build-depends ! -name rules -exec cp -t $(O)/debian {} + && \
		cat $$a/debian/control >>$(O)/debian/control && \
		sed -i "s/^Build-Depends: /&$$(cat $$a/debian/build-depends), /" $(O)/debian/control || exit 1; \
		[ ! -f $$a/debian/rules ] || cp $$a/debian/rules $(O)/debian/$${a##*/}.rules; \
	done
