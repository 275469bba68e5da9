# ruby.mk: the library for Ruby: a folder to be named to Ruby by -I, whose extension holds the library (needs ruby-dev). Gem users
# build it by extconf.rb instead.
#
# SPDX-License-Identifier: BSD-2-Clause

need_ruby := faketime puma redis-tools ruby ruby-activesupport ruby-dev ruby-rack ruby-rack-attack unicorn
need_deb_ruby := ruby ruby-dev
need_bundles_ruby := ruby ruby-dev
versions_ruby := tools/ruby/lib/shmlimit/version.rb

lacks_ruby = $(if $(built_ruby),,ruby-dev)

# What Ruby's headers do is not ours to warn of.
ruby_native := $(O)/ruby/shmlimit/native.so
built_ruby := $(if $(wildcard /usr/include/ruby-*/ruby.h),$(ruby_native) \
	$(patsubst tools/ruby/lib/%,$(O)/ruby/%,$(wildcard tools/ruby/lib/*.rb tools/ruby/lib/shmlimit/*.rb)))
ruby_inc = $(addprefix -isystem ,$(shell /usr/bin/ruby -rrbconfig -e 'puts RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir")'))
$(O)/tools/ruby/%.o: warn += -Wno-unused-parameter -Wno-cast-qual
$(O)/tools/ruby/%.o: server_cflags = -std=gnu11 -DHAVE_RB_EXT_RACTOR_SAFE $(ruby_inc)

$(O)/ruby/%.rb: tools/ruby/lib/%.rb
	@mkdir -p $(@D)
	install -m 644 $< $@

$(ruby_native): $(call obj,tools/ruby/ext/shmlimit) $(gate_used)
	@mkdir -p $(@D)
	$(link_module)

.PHONY: gem
bundles: gem
bundle_goals += build-ruby
gem: bundled
	@rm -rf $(bundle)/gem && cp -r tools/ruby $(bundle)/gem && cp $(bundle)/LICENSE $(bundle)/gem && mkdir $(bundle)/gem/sources
	@version=$$(tools/version.sh gem) && sed -i "s/Shmlimit::VERSION/\"$$version\"/" $(bundle)/gem/shmlimit.gemspec
	@$(call library_sources,$(bundle)/gem/sources)
	@out=$$(cd $(O)/bundles && pwd) && gem build -C $(bundle)/gem shmlimit.gemspec -o "$$out"/shmlimit-"$$(tools/version.sh gem)".gem >/dev/null 2>&1
	@rm -r $(bundle)/gem/sources && cp $(bundle)/libs/* $(bundle)/ruby/shmlimit/native.so $(bundle)/gem/lib/shmlimit
	@cp $(bundle)/LICENSE.bundled $(bundle)/gem
	@tools/glibc.sh $(bundle)/gem/lib/shmlimit/*.so* >/dev/null
	@out=$$(cd $(O)/bundles && pwd) && gem build -C $(bundle)/gem shmlimit.gemspec -o "$$out"/shmlimit-"$$(tools/version.sh gem)"-$(ARCH)-linux.gem >/dev/null 2>&1
