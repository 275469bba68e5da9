# node.mk: a package for Node, whose addon holds the library: to be copied, or installed by npm without a compiler.
#
# SPDX-License-Identifier: BSD-2-Clause

# Where Node's headers are: beside the node that is found, or where Debian has them.
node_inc := $(patsubst %/node_api.h,%,$(firstword $(wildcard $(addsuffix /node_api.h,\
	$(shell readlink -f "$$(command -v node)" 2>/dev/null | sed 's|/bin/node$$|/include/node|') /usr/include/node \
	/usr/include/nodejs/src))))

need_node := faketime nodejs redis-tools $(if $(node_inc),,libnode-dev)
need_deb_node := $(if $(node_inc),,libnode-dev)
need_bundles_node = $(if $(shell command -v npm),,nodejs npm) $(if $(node_inc),,libnode-dev)
versions_node := tools/node/package.json

node_addon := $(O)/node/build/Release/shmlimit.node
built_node := $(if $(node_inc),$(node_addon) $(patsubst tools/node/%,$(O)/node/%,$(wildcard $(addprefix tools/node/,package.json README.md \
	*.js *.d.ts stores/*.js stores/*.d.ts pace/*.js pace/*.d.ts))))
lacks_node := $(if $(node_inc),,libnode-dev)
$(O)/tools/node/%.o: server_cflags = -isystem $(node_inc)
$(node_addon): $(call obj,tools/node/src) $(gate_used)
	@mkdir -p $(@D)
	$(link_module)

$(O)/node/%: tools/node/%
	@mkdir -p $(@D)
	install -m 644 $< $@

.PHONY: npm
bundles: npm
bundle_goals += build-node
npm: bundled
	@rm -rf $(bundle)/npm && cp -r tools/node $(bundle)/npm && cp $(bundle)/LICENSE* $(bundle)/npm && rm -rf $(bundle)/npm/build $(bundle)/npm/prebuilds
	@version=$$(tools/version.sh npm) && sed -i "s/\"version\": .*/\"version\": \"$$version\",/" $(bundle)/npm/package.json
	@out=$$(cd $(O)/bundles && pwd) && cd $(bundle)/npm && mkdir -p prebuilds/linux-$$(node -p process.arch) && \
		cp ../libs/* ../node/build/Release/shmlimit.node prebuilds/linux-*/ && '$(CURDIR)/tools/glibc.sh' prebuilds/linux-*/* >/dev/null && \
		npm pack --silent --pack-destination "$$out" >/dev/null
