# servers.mk: modules for servers, and packages for languages. Each holds the library, so that it is one file to install.
#
# SPDX-License-Identifier: BSD-2-Clause

.PHONY: servers nginx apache php node ruby lua
help::
	@echo 'make nginx        the module for nginx; needs nginx-dev'
	@echo 'make apache       the module for Apache httpd; needs apache2-dev'
	@echo 'make php          the extension for PHP (needs php-dev), and its classes in PHP, in $(O)/php'
	@echo 'make node         the package for Node, in $(O)/node; needs the headers of Node'
	@echo 'make ruby         the library for Ruby, in $(O)/ruby; needs ruby-dev'
	@echo 'make lua          the module for Lua 5.3 and 5.4, in $(O)/lua; needs liblua5.3-dev, liblua5.4-dev'

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
nginx_inc = $(patsubst %,-isystem $(O)/nginx/%,src/core src/event src/event/modules \
	src/event/quic src/os/unix src/http src/http/modules src/http/v2 src/http/v3 objs)
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

# A folder for each Lua whose headers there are, for package.cpath. LuaJIT needs nothing that is built. Their functions call
# luaL_error(), which does not return.
lua_versions := $(patsubst /usr/include/lua%/lua.h,%,$(wildcard /usr/include/lua5.3/lua.h /usr/include/lua5.4/lua.h))
lua_modules := $(patsubst %,$(O)/lua/%/shmlimit.so,$(lua_versions))
define lua_module
$(O)/lua/$(1)/%.o: server_cflags = -isystem /usr/include/lua$(1)
$(O)/lua/$(1)/%.o: tools/lua/ext/%.c Makefile
	@mkdir -p $$(@D)
	$$(CC) $$(all_cflags) -c -o $$@ $$<
$(O)/lua/$(1)/shmlimit.so: $(patsubst tools/lua/ext/%.c,$(O)/lua/$(1)/%.o,$(wildcard tools/lua/ext/*.c)) $$(gate_used)
	$$(link_module) -lm
endef
$(foreach v,$(lua_versions),$(eval $(call lua_module,$(v))))

# What there is something installed to build with.
servers := $(if $(wildcard $(nginx_src)/configure),$(nginx_module)) $(if $(wildcard /usr/bin/apxs),$(apache_module)) \
	$(if $(node_inc),$(node)) $(if $(ruby_header),$(ruby)) $(lua_modules)

servers: $(servers)
node: $(node)
ruby: $(ruby)
lua: $(lua_modules)
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
	-DCOMPILE_DL_SHMLIMIT -DZEND_ENABLE_STATIC_TSRMLS_CACHE=1 -I$(O)/tools/php/ext
$(O)/tools/php/ext/shmlimit.o: $(O)/tools/php/ext/shmlimit_arginfo.h
$(O)/tools/php/ext/shmlimit_arginfo.h: tools/php/ext/arginfo.php tools/php/ext/shmlimit.stub.php
	@mkdir -p $(@D)
	$$(php-config --php-binary) -n $< >$@
$(O)/php/shmlimit.so: $(call obj,tools/php/ext) $(gate_used)
	@mkdir -p $(@D)
	$(link_module)
