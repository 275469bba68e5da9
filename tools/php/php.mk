# php.mk: the extension for PHP, which holds the library (needs php-dev), and its classes in PHP.
#
# SPDX-License-Identifier: BSD-2-Clause

need_php := faketime libfcgi-bin nginx php-apcu php-cli php-dev php-fpm php-illuminate-cache php-illuminate-routing php-nyholm-psr7 \
	php-psr-log php-symfony-http-foundation php-symfony-rate-limiter redis-tools
need_deb_php := dh-php php-dev

# The folder to be copied to where PHP finds it. Its FFI reads C, but neither what is included nor what is defined.
built_php := $(patsubst tools/php/src/%,$(O)/php/Shmlimit/%,$(wildcard $(addprefix tools/php/src/,*.php */*.php */*/*.php))) \
	$(O)/php/Shmlimit/shmlimit.h $(O)/php/Shmlimit/shmlimit_global.h $(if $(shell command -v php-config),$(O)/php/shmlimit.so)

lacks_php := $(if $(shell command -v php-config),,php-dev)
$(O)/php/Shmlimit/%.php: tools/php/src/%.php
	@mkdir -p $(@D)
	install -m 644 $< $@

$(O)/php/Shmlimit/shmlimit.h: include/shmlimit.h include/shmlimit_gate.h Makefile
$(O)/php/Shmlimit/shmlimit.h: php_lib := gate
$(O)/php/Shmlimit/shmlimit_global.h: include/shmlimit.h include/shmlimit_global.h Makefile
$(O)/php/Shmlimit/shmlimit_global.h: php_lib := global
$(O)/php/Shmlimit/%.h: | $(no_compiler)
	@mkdir -p $(@D)
	printf '#define FFI_SCOPE "%s"\n#define FFI_LIB "libshmlimit-$(php_lib).so.$(SOVERSION)"\n' \
		"$$(echo $* | tr a-z A-Z)" >$@
	sed -E '/^#include/d; s/^#define (SHMLIMIT_[A-Z0-9_]+) +([0-9]+)u?( .*)?$$/enum { \1 = \2 }; \3/' $(filter %.h,$^) | \
		$(CC) -E -P - >>$@

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
