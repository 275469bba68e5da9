# bundles.mk: a wheel, a gem and a package of npm that bring the libraries, and install without a compiler. Their sources bring
# the sources of the libraries.
#
# They have the libraries as files, so that Redis and TLS are loaded for backend= only; these two are linked statically. liburcu
# is a file of its own, as its license asks.
#
# SPDX-License-Identifier: BSD-2-Clause

.PHONY: bundles wheel gem npm bundled
help::
	@echo 'make bundles      a wheel, a gem and an npm package, with the libraries, for machines with this architecture, in $(O)/bundles'

bundle := $(O)/bundle
bundles: wheel gem npm
python := /usr/bin/python3

# In an O of their own: they are linked in another way.
bundled:
	@tools/need.sh $(for_bundles)
	+@$(MAKE) --no-print-directory -s O=$(bundle) SHARED=1 BUNDLE=1 SAN= lib ruby node
	@rm -rf $(bundle)/libs $(O)/bundles && mkdir -p $(bundle)/libs $(O)/bundles
	@cp $(foreach l,libshmlimit libshmlimit-global libshmlimit-gate,$(bundle)/$(l).so.$(SOVERSION)) $(bundle)/libs
	@ldd $(bundle)/libshmlimit-gate.so | awk '/liburcu/ { print $$3 }' | xargs -I{} cp -L {} $(bundle)/libs
	@cp LICENSE $(bundle)/LICENSE && for p in liburcu8 libhiredis0.14 libhiredis1.1.0 libssl3 libssl3t64; do \
		cat /usr/share/doc/$$p/copyright 2>/dev/null || :; done >$(bundle)/LICENSE.bundled

# What a package of sources has of the libraries.
library_sources = find Makefile include lib tools/*.mk tools/need.sh tools/version.sh tests/tests.mk -type f \
	! -name '*.md' ! -name '*.svg' ! -name '*.[1-9]' ! -path '*/doc/*' -exec cp --parents -t $(1) {} +

wheel: bundled
	@rm -rf $(bundle)/python && cp -r tools/python $(bundle)/python && cp $(bundle)/LICENSE $(bundle)/python && mkdir $(bundle)/python/sources
	@sed -i 's/^version = .*/version = "$(shell tools/version.sh python)"/' $(bundle)/python/pyproject.toml
	@$(call library_sources,$(bundle)/python/sources)
	@printf 'include LICENSE\ngraft sources\n' >>$(bundle)/python/MANIFEST.in
	@cd $(bundle)/python && $(python) setup.py -q sdist -d $(CURDIR)/$(O)/bundles 2>$(CURDIR)/$(bundle)/sdist.log || { cat $(CURDIR)/$(bundle)/sdist.log; exit 1; }
	@rm -r $(bundle)/python/sources
	@cp -r $(bundle)/libs $(bundle)/python/shmlimit/lib && cp $(bundle)/LICENSE.bundled $(bundle)/python
	@cd $(bundle)/python && LDFLAGS='-s -Wl,-z,relro,-z,now' $(python) setup.py -q bdist_wheel -d $(CURDIR)/$(O)/bundles \
		--plat-name manylinux_$$($(CURDIR)/tools/glibc.sh ../libs/* | tr . _)_$(ARCH) 2>../wheel.log || { cat ../wheel.log; exit 1; }

gem: bundled
	@rm -rf $(bundle)/gem && cp -r tools/ruby $(bundle)/gem && cp $(bundle)/LICENSE $(bundle)/gem && mkdir $(bundle)/gem/sources
	@sed -i 's/Shmlimit::VERSION/"$(shell tools/version.sh gem)"/' $(bundle)/gem/shmlimit.gemspec
	@$(call library_sources,$(bundle)/gem/sources)
	@gem build -C $(bundle)/gem shmlimit.gemspec -o $(CURDIR)/$(O)/bundles/shmlimit-$(shell tools/version.sh gem).gem >/dev/null 2>&1
	@rm -r $(bundle)/gem/sources && cp $(bundle)/libs/* $(bundle)/ruby/shmlimit/native.so $(bundle)/gem/lib/shmlimit
	@cp $(bundle)/LICENSE.bundled $(bundle)/gem
	@tools/glibc.sh $(bundle)/gem/lib/shmlimit/*.so* >/dev/null
	@gem build -C $(bundle)/gem shmlimit.gemspec -o $(CURDIR)/$(O)/bundles/shmlimit-$(shell tools/version.sh gem)-$(ARCH)-linux.gem >/dev/null 2>&1

npm: bundled
	@rm -rf $(bundle)/npm && cp -r tools/node $(bundle)/npm && cp $(bundle)/LICENSE* $(bundle)/npm && rm -rf $(bundle)/npm/build $(bundle)/npm/prebuilds
	@sed -i 's/"version": .*/"version": "$(shell tools/version.sh npm)",/' $(bundle)/npm/package.json
	@cd $(bundle)/npm && mkdir -p prebuilds/linux-$$(node -p process.arch) && \
		cp ../libs/* ../node/build/Release/shmlimit.node prebuilds/linux-*/ && $(CURDIR)/tools/glibc.sh prebuilds/linux-*/* >/dev/null && \
		npm pack --silent --pack-destination $(CURDIR)/$(O)/bundles >/dev/null
