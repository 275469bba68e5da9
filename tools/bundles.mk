# bundles.mk: a wheel, a gem and a package of npm that bring the libraries, and install without a compiler. Their sources bring
# the sources of the libraries.
#
# They have the libraries as files, so that Redis and TLS are loaded for backend= only; these two are linked statically. liburcu
# is a file of its own, as its license asks.
#
# SPDX-License-Identifier: BSD-2-Clause

.PHONY: bundles bundled
help::
	@echo 'make bundles      a wheel, a gem and an npm package, with the libraries, for machines with this architecture, in $(O)/bundles'

# Which there are, the annexes say: each has a goal of its own, on which this one depends.
bundle := $(O)/bundle
bundles:

# In an O of their own: they are linked in another way.
bundled: versioned
	@tools/need.sh $(for_bundles)
	+@$(MAKE) --no-print-directory -s O=$(bundle) SHARED=1 BUNDLE=1 SAN= lib $(bundle_goals)
	@rm -rf $(bundle)/libs $(O)/bundles && mkdir -p $(bundle)/libs $(O)/bundles
	@cp $(foreach l,$(library_names),$(bundle)/$(l).so.$(SOVERSION)) $(bundle)/libs
	@ldd $(bundle)/libshmlimit-gate.so | awk '/liburcu/ { print $$3 }' | xargs -I{} cp -L {} $(bundle)/libs
	@cp LICENSE $(bundle)/LICENSE && for p in liburcu8 libhiredis0.14 libhiredis1.1.0 libssl3 libssl3t64; do \
		cat /usr/share/doc/$$p/copyright 2>/dev/null || :; done >$(bundle)/LICENSE.bundled

# What a package of sources has of the libraries.
library_sources = find Makefile include lib tools/*.mk tools/need.sh tools/version.sh tests/tests.mk -type f ! -path '*/tests/*.[ch]' \
	! -name '*.md' ! -name '*.svg' ! -name '*.[1-9]' ! -path '*/doc/*' -exec cp --parents -t $(1) {} +
