#!/bin/sh
# guides: each command of the guides in lib/doc prints what the guide has, and their programs and configurations work.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/cli/guide.inc"
need curl jq
! nm -D "$BUILD/libshmlimit.so" | grep -q '__asan_\|__tsan_' ||
	skip_all "a library that was built with a sanitizer is for programs that were, too"

PYTHONPATH=$SOURCE/tools/python LD_LIBRARY_PATH=$BUILD PYTHONDONTWRITEBYTECODE=1 no_proxy='*'
export PYTHONPATH LD_LIBRARY_PATH PYTHONDONTWRITEBYTECODE no_proxy
PATH=$PATH:/usr/sbin
mkdir "$TMP/folder" && cd "$TMP/folder" || exit

# blocks LANGUAGE: those of the page, one after another.
blocks() { awk -v language="$1" '/^```/ { on = !on && $0 == "```" language; next } on' "$guide"; }

# What a page tells to type is there on a bare Debian, or the page says which package it takes, and where Python
# finds the module.
missing=
for guide in "$SOURCE"/lib/doc/*.md "$SOURCE"/tools/shmlimit/oncall.md; do
	typed=$(blocks console | sed -n 's/^[$>] //p')
	for tool in cc curl docker gcc git gunicorn haproxy jq kubectl make nft nginx node php python3 redis-cli ruby sudo systemctl wrk; do
		printf '%s\n' "$typed" | grep -qE "(^|[|;&(] *|do )(sudo )?$tool( |\$)" || continue
		# Pages on programs, and those that a reader of sources has.
		case ${guide##*/}:$tool in
		tutorial.md:make) continue ;;
		*:python3)
			grep -q 'PYTHONPATH=\|(tutorial.md#1-build)' "$guide" || missing="$missing ${guide##*/}:PYTHONPATH"
			continue
			;;
		esac
		grep -q "apt install[^\`]*$tool" "$guide" || missing="$missing ${guide##*/}:$tool"
	done
done
is "$missing" "" "each command that a guide tells to type is in a bare Debian, or the guide says where it is"

for guide in "$SOURCE"/lib/doc/*.md; do
	page=${guide##*/}
	if grep -q '^```python' "$guide" && ! python3 -c 'import ctypes' 2>/dev/null; then
		ok 0 "$page: its commands print what the page has # SKIP python3 is not installed"
	else
		# There the config map makes it.
		[ "$page" != containers.md ] || mkdir -p "$TMP/etc/shmlimit.d"
		guide "$guide"
	fi
	if [ -n "$(blocks yaml)" ] && python3 -c 'import yaml' 2>/dev/null; then
		blocks yaml | sed 's/^\(services\|apiVersion\|volumes\|http\):/---\n&/' | python3 -c 'import sys, yaml; print(*map(list, filter(None, yaml.safe_load_all(sys.stdin))))' >"$TMP/keys"
		case $page in
		containers.md) keys="['services'] ['apiVersion', 'kind', 'metadata', 'spec'] ['volumes']" ;;
		*) keys="['apiVersion', 'kind', 'metadata'] ['http']" ;;
		esac
		is "$(cat "$TMP/keys")" "$keys" "$page: its YAML can be read"
	fi
	module=$BUILD/nginx/ngx_http_shmlimit_module.so
	if [ -n "$(blocks nginx)" ] && [ -f "$module" ] && command -v nginx >/dev/null; then
		{
			echo "load_module $module; pid $TMP/pid; error_log $TMP/error; events {} http { access_log off;"
			for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $TMP/$kind;"; done
			blocks nginx | guide_line | sed "s,127.0.0.1:[0-9]*,unix:$TMP/sock,"
			echo '}'
		} >"$TMP/nginx.conf"
		run nginx -t -q -e "$TMP/error" -c "$TMP/nginx.conf"
		is "$rc $(grep -v "$SEGMENT.web: no such segment" "$TMP/error")" "0 " "$page: nginx accepts its configuration"
	fi
	# What is made in a container ends with it.
	[ "$page" = containers.md ] || is "$(cd "${SHM%/*}" && ls | grep -F "$SEGMENT")" "" "$page: it leaves no segment to the next guide"
	rm -f "$SHM$SEGMENT"*
	rm -rf "${TMP:?}/folder"/* "$TMP/etc" "$TMP/var"
done

if command -v gcc >/dev/null; then
	gcc -Wall -Wextra -Werror "$SOURCE/lib/doc/algorithms.c" -I"$SOURCE/include" -L"$BUILD" -lshmlimit -o "$TMP/draw"
	ok $? "algorithms.c can be compiled"
	"$TMP/draw" >"$TMP/drawn"
	cmp -s "$TMP/drawn" "$SOURCE/lib/doc/algorithms.svg"
	ok $? "algorithms.svg is what the library does"
fi
linked=$(sed -n 's/.*](\([a-z]*\.md\)).*/\1/p' "$SOURCE/lib/doc/README.md" | sort -u)
is "$linked" "$(cd "$SOURCE/lib/doc" && ls *.md | grep -v README)" "the list of guides has each guide"
done_testing
