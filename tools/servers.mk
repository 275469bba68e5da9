# servers.mk: modules for servers. Each holds the library, so that it is one file to install.
#
# SPDX-License-Identifier: BSD-2-Clause

.PHONY: servers nginx apache needs-nginx needs-apache
help::
	@echo 'make nginx        the module for nginx; needs nginx-dev'
	@echo 'make apache       the module for Apache httpd; needs apache2-dev'

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
# Their functions take arguments that they need not use.
$(O)/tools/nginx/%.o $(O)/tools/apache/%.o: warn += -Wno-unused-parameter -Wno-cast-qual
$(O)/tools/nginx/%.o: server_cflags = -Itools/server $(nginx_inc)
$(O)/tools/apache/%.o: server_cflags = -fvisibility=default -Itools/server -isystem $(shell apxs -q INCLUDEDIR) \
	-isystem $(shell apxs -q APR_INCLUDEDIR) $(filter-out -D_GNU_SOURCE,$(shell apxs -q EXTRA_CPPFLAGS))

# Its configure splits names at blanks, so it gets this folder by a link.
$(O)/nginx/objs/ngx_auto_config.h: tools/nginx/config | $(if $(wildcard $(nginx_src)/configure),,needs-nginx)
	@mkdir -p $(O)
	rm -rf $(O)/nginx && cp -r $(nginx_src) $(O)/nginx
	ln -s '$(CURDIR)' $(O)/nginx/shmlimit
	cd $(O)/nginx && bash -c '. ./conf_flags && ./configure "$${NGX_CONF_FLAGS[@]}" \
		--add-dynamic-module=shmlimit/tools/nginx' >configure.log

$(call obj,tools/nginx): $(O)/nginx/objs/ngx_auto_config.h

# What there is something installed to build with.
servers := $(if $(wildcard $(nginx_src)/configure),$(nginx_module)) $(if $(wildcard /usr/bin/apxs),$(apache_module))

servers: $(servers)
nginx: $(nginx_module)
apache: $(apache_module)

needs-nginx needs-apache:
	@INSTALL=ask tools/need.sh 'make $(@:needs-%=%):' $(need_module_$(@:needs-%=%)); exit 1
need_module_nginx := nginx-dev
need_module_apache := apache2-dev
$(O)/tools/apache/mod_shmlimit.o: | $(if $(wildcard /usr/bin/apxs),,needs-apache)

# What nginx looks for in a module, as its configure wrote it.
$(O)/tools/nginx/modules.o: $(O)/nginx/objs/ngx_auto_config.h
	@mkdir -p $(@D)
	$(CC) -fPIC $(nginx_inc) -c -o $@ $(O)/nginx/objs/ngx_http_shmlimit_module_modules.c

$(nginx_module): $(call obj,tools/nginx) $(O)/tools/nginx/modules.o $(server_obj) $(gate_used)
	$(link_module)

$(apache_module): $(O)/tools/apache/mod_shmlimit.o $(server_obj) $(gate_used)
	@mkdir -p $(@D)
	$(link_module)
