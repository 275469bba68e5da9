# lua.mk: a module for each Lua whose headers there are (5.3, 5.4), in a folder for package.cpath. LuaJIT needs nothing that is built.
#
# SPDX-License-Identifier: BSD-2-Clause

need_lua := haproxy libnginx-mod-http-lua liblua5.3-dev liblua5.4-dev lua5.3 lua5.4 'luajit2|luajit' luarocks nginx redis-tools
need_deb_lua := liblua5.3-dev liblua5.4-dev
versions_lua := tools/lua/*.rockspec tools/lua/*/*.lua tools/lua/*/*/*.lua tools/lua/*/*/*/*.lua

lua_versions := $(patsubst /usr/include/lua%/lua.h,%,$(wildcard /usr/include/lua5.3/lua.h /usr/include/lua5.4/lua.h))
lacks_lua := $(if $(lua_versions),,liblua5.4-dev)
built_lua := $(patsubst %,$(O)/lua/%/shmlimit.so,$(lua_versions))

# Their functions call luaL_error(), which does not return.
define lua_module
$(O)/lua/$(1)/%.o: server_cflags = -isystem /usr/include/lua$(1)
$(O)/lua/$(1)/%.o: tools/lua/ext/%.c Makefile
	@mkdir -p $$(@D)
	$$(CC) $$(all_cflags) -c -o $$@ $$<
$(O)/lua/$(1)/shmlimit.so: $(patsubst tools/lua/ext/%.c,$(O)/lua/$(1)/%.o,$(wildcard tools/lua/ext/*.c)) $$(gate_used)
	$$(link_module) -lm
endef
$(foreach v,$(lua_versions),$(eval $(call lua_module,$(v))))
