#!/bin/sh
# deb: `make deb` makes packages that lintian has nothing against, that can be built against, that come and go
# without a trace, in a root that is thrown away, and with which nginx's steps from packages can be taken.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

# The distribution's tools, whatever else there is of their names.
PATH=$BUILD/bin:/usr/sbin:/usr/bin:/sbin:/bin
# lacks COMMAND...: those that there aren't.
lacks() { for c; do command -v "$c" >/dev/null || printf ' %s' "$c"; done; }
[ -z "$(lacks dpkg-checkbuilddeps lintian)" ] || skip_all "no$(lacks dpkg-checkbuilddeps lintian)"
make --no-print-directory -s -C "$SOURCE" O="$TMP" debian
missing=$(cd "$SOURCE" && dpkg-checkbuilddeps "$TMP/debian/control" 2>&1) || skip_all "$missing"

version=$(sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' "$SOURCE/include/shmlimit.h")
is "$(dpkg-parsechangelog -l "$SOURCE/tools/debian/changelog" -S Version)" "$version" \
	"the packages' version is the library's"

# make check runs the tests; here they would be run once more. Debug symbols take time, and no package has them.
debs=$TMP/deb
env -u MAKEFLAGS DEB_CFLAGS_MAINT_APPEND='-O3 -g0' DEB_BUILD_OPTIONS='nocheck noautodbgsym parallel=2' DEBFULLNAME='A. Packager' \
	DEBEMAIL=packager@example.org \
	make --no-print-directory -s -C "$SOURCE" O="$TMP" deb >"$TMP/log" 2>&1
rc=$?
ok $rc "make deb works"
[ $rc -eq 0 ] || { diag "$(tail -n 20 "$TMP/log")"; done_testing; }
packages="libapache2-mod-shmlimit libnginx-mod-http-shmlimit libshmlimit-dev libshmlimit-gate1 libshmlimit-global1 libshmlimit1 lua-shmlimit node-shmlimit php-shmlimit \
python3-shmlimit ruby-shmlimit shmlimit-doc shmlimit"
is "$(cd "$debs" && ls ./*.deb | sed 's|^./||; s/_.*//' | tr '\n' ' ')" "$packages " "the build makes these packages"
is "$(ls -d "$debs"/*/ 2>/dev/null)" "" "the build leaves no folder behind"
is "$(grep 'warning: ' "$debs/build.log" | grep -v 'byte-compiling is disabled\|diversions involved')" "" "no tool warns"

# In machine code it reads words of three letters.
is "$(lintian --allow-root -EI --pedantic --tag-display-limit 0 "$debs"/*.changes 2>/dev/null | grep -vE 'spelling-error-in-binary [^ ]{3} ')" "" \
	"lintian has nothing to say"
is "$(dpkg-deb -f "$debs"/shmlimit_*.deb Maintainer)" "A. Packager <packager@example.org>" "the builder of the packages is their maintainer"

# What is in them.
root=$TMP/root
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
files() { dpkg-deb -c "$debs/$1"_*.deb | awk '$1 !~ /^d/ { print $6 }' | grep -vE '/usr/share/(doc|lintian)/' | sort | tr '\n' ' '; }
needs() { dpkg-deb -f "$debs/$1"_*.deb Depends | tr ',' '\n' | sed 's/^ *//; s/ .*//' | sort | tr '\n' ' '; }
lib=./usr/lib/$multiarch
is "$(files libshmlimit1)" "$lib/libshmlimit.so.1 $lib/libshmlimit.so.$version " "libshmlimit1 is the shared library"
is "$(files libshmlimit-global1)" "$lib/libshmlimit-global.so.1 $lib/libshmlimit-global.so.$version " \
	"libshmlimit-global1 is the one for many hosts"
is "$(files libshmlimit-gate1)" "$lib/libshmlimit-gate.so.1 $lib/libshmlimit-gate.so.$version " "libshmlimit-gate1 is the gate"
is "$(files libshmlimit-dev | sed 's|./usr/share/man/man3/shmlimit_[a-z_]*.3.gz ||g')" "./usr/include/shmlimit.h ./usr/include/shmlimit_gate.h ./usr/include/shmlimit_global.h \
./usr/include/shmlimit_lease.h $lib/libshmlimit-gate.a $lib/libshmlimit-gate.so $lib/libshmlimit-global.a \
$lib/libshmlimit-global.so $lib/libshmlimit.a $lib/libshmlimit.so $lib/pkgconfig/shmlimit-gate.pc $lib/pkgconfig/shmlimit-global.pc \
$lib/pkgconfig/shmlimit.pc ./usr/share/man/man3/shmlimit.3.gz " \
	"libshmlimit-dev is what programs are built with"
like "$(files libshmlimit-dev)" ' ./usr/share/man/man3/shmlimit_take_all.3.gz ' "libshmlimit-dev has a manual page for shmlimit_take_all"
units=$(dpkg-deb -c "$debs"/shmlimit_*.deb | sed -n 's|.* \.\(/.*\)/shmlimit.service$|\1|p')
like "$units" '^(/usr)?/lib/systemd/system$' "units are where the distribution has its own"
is "$(files shmlimit | tr ' ' '\n' | sed -n "s|^\.$units/||p" | tr '\n' ' ')" "shmlimit-agent@.service shmlimit-nft@.service shmlimit-state@.service \
shmlimit.service " "shmlimit has the units"
is "$(files shmlimit | tr ' ' '\n' | grep -v systemd | tr '\n' ' ')" "./usr/bin/shmlimit \
./usr/share/bash-completion/completions/shmlimit ./usr/share/fish/vendor_completions.d/shmlimit.fish \
./usr/share/man/man1/shmlimit.1.gz ./usr/share/man/man7/shmlimit-security.7.gz ./usr/share/man/man7/shmlimit.7.gz \
./usr/share/zsh/vendor-completions/_shmlimit " "shmlimit is the command"
is "$(files libapache2-mod-shmlimit)" "./etc/apache2/mods-available/shmlimit.load \
./usr/lib/apache2/modules/mod_shmlimit.so " "libapache2-mod-shmlimit is the module"
is "$(files libnginx-mod-http-shmlimit)" "./usr/lib/nginx/modules/ngx_http_shmlimit_module.so \
./usr/share/nginx/modules-available/mod-http-shmlimit.conf " "libnginx-mod-http-shmlimit is the other one"
like "$(files python3-shmlimit)" ' ./usr/lib/python3/dist-packages/shmlimit/_native.abi3.so ' "python3-shmlimit has the extension"
is "$(files node-shmlimit | tr ' ' '\n' | sed -n '/shmlimit.node$/p; /nestjs.js$/p')" "$lib/nodejs/shmlimit/build/Release/shmlimit.node
$lib/nodejs/shmlimit/stores/nestjs.js" "node-shmlimit has the addon and the stores"
like "$(files ruby-shmlimit)" " ./usr/lib/ruby/vendor_ruby/shmlimit/store.rb .* $lib/ruby/vendor_ruby/[0-9.]*/shmlimit/native.so " \
	"ruby-shmlimit has the extension and the store"
is "$(files lua-shmlimit | tr ' ' '\n' | grep -c '/5.1/resty/shmlimit/cdef.lua$\|/5.[34]/shmlimit.so$\|/5.[34]/shmlimit/haproxy.lua$')" 5 \
	"lua-shmlimit has the modules for LuaJIT, Lua 5.3 and 5.4"
for package in shmlimit libapache2-mod-shmlimit libnginx-mod-http-shmlimit lua-shmlimit node-shmlimit php-shmlimit python3-shmlimit ruby-shmlimit; do
	like "$(needs $package)" '(^| )libshmlimit1 ' "$package has no library of its own"
done
for package in libapache2-mod-shmlimit libnginx-mod-http-shmlimit lua-shmlimit node-shmlimit php-shmlimit python3-shmlimit ruby-shmlimit; do
	like "$(needs $package)" '(^| )libshmlimit-gate1 ' "$package has no gate of its own"
	[ "$(needs $package | grep -c 'global[0-9]\|hiredis')" = 0 ]
	ok $? "$package needs the library for many hosts only where it is used"
done
like "$(needs libnginx-mod-http-shmlimit)" 'nginx-abi-' "the module for nginx asks for the nginx that it was built for"
like "$(needs php-shmlimit)" '(^| )phpapi-' "php-shmlimit asks for the interface of the PHP that it was built for"
like "$(dpkg-deb -f "$debs"/ruby-shmlimit_*.deb Depends)" 'ruby [(]>= 1:[0-9.]+~[)], ruby [(]<< ' \
	"ruby-shmlimit asks for the Ruby that it was built for"
like "$(needs libapache2-mod-shmlimit)" 'apache2-api-' "that for Apache for its interface"

# Built against.
for package in libshmlimit1 libshmlimit-global1 libshmlimit-dev shmlimit; do dpkg-deb -x "$debs/$package"_*.deb "$root"; done
PKG_CONFIG_PATH=$root/usr/lib/$multiarch/pkgconfig
PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
flags=$(pkg-config --cflags --libs shmlimit)
block lib/shmlimit.3.in mdoc | sed "s/\"example\"/\"$SEGMENT.example\"/g" >"$TMP/manual.c"
block lib/doc/program.md c | sed "s/\"demo\"/\"$SEGMENT\"/" >"$TMP/guide.c"
shmlimit create "$SEGMENT" && shmlimit rule set "$SEGMENT" login --capacity 2 --rate 1/h
for example in manual guide; do
	for compiler in 'gcc -std=c11' 'g++ -x c++ -std=c++20 -Wno-missing-field-initializers'; do
		rm -f "$TMP/$example"
		# shellcheck disable=SC2086
		$compiler -Wall -Wextra -Werror "$TMP/$example.c" $flags -o "$TMP/$example"
		ok $? "the example of the $example compiles against the packages: $compiler"
		run env LD_LIBRARY_PATH="$root/usr/lib/$multiarch" "$TMP/$example"
		is "$rc" 0 "the example runs"
	done
done
run env LD_LIBRARY_PATH="$root/usr/lib/$multiarch" "$root/usr/bin/shmlimit" --version
is "$rc $out" "0 shmlimit $version" "the packaged command runs"

# After a purge segments stay; those in use are named with their processes.
for name in used used2; do shmlimit create "$SEGMENT.$name"; done
shmlimit rule set "$SEGMENT.used" job --algorithm hold --capacity 1 --period 1h
shmlimit hold "$SEGMENT.used" job key -- sh -c "touch $TMP/works; until [ -e $TMP/go ]; do sleep 0.01; done" &
user=$!
until [ -e "$TMP/works" ]; do sleep 0.01; done
is "$(sh "$SOURCE/tools/debian/shmlimit.postrm" purge | grep -F "$SEGMENT.used" | sed 's/.*\.used/used/')" "used is the site's and stays; in use by process $user 
used2 is the site's and stays" "a purge names the segments that stay, and the processes that use them"
touch "$TMP/go"
wait "$user"
for name in used used2; do shmlimit destroy "$SEGMENT.$name"; done

# Installed and purged, where root may lay a folder over the system's and go there. No other processes, network
# or shared memory are to be seen from there, so that no script of a package can reach them.
cat >"$TMP/come_and_go" <<'END'
cd / || exit 1
say() { printf '== %s\n' "$*"; }
rm -f /var/lib/man-db/auto-update       # it would read every page of the system, twice
dpkg -i /debs/*.deb >/debs/log 2>&1
say installed $?
shmlimit --version
ldconfig -p | grep -c libshmlimit.so.1
readlink /etc/systemd/system/sysinit.target.wants/shmlimit.service
readlink /etc/nginx/modules-enabled/50-mod-http-shmlimit.conf
printf '[login]\ncapacity = 15\nrate = 30/m\n' >/etc/shmlimit.d/web.conf
sh -c "$(sed -n 's/^ExecStart=//p' /lib/systemd/system/shmlimit.service)"
python3 -c 'import shmlimit; print(shmlimit.Limiter("web").take("login", "key").remaining)'
php -r 'echo (new Shmlimit\Limiter("web"))->take("login", "key")->remaining, "\n";'
/usr/bin/ruby -e 'gem "shmlimit"; require "shmlimit"; puts Shmlimit::Limiter.new("web").take("login", "key").remaining'
# Debian's Node looks there without being told.
NODE_PATH=$(dirname /usr/lib/*/nodejs/shmlimit) node -e '
	const l = new (require("shmlimit").Limiter)("web"); l.take("login", "key"); console.log(l.result.remaining)'
for lua in 'luajit resty.shmlimit' 'lua5.3 shmlimit' 'lua5.4 shmlimit'; do
	${lua% *} -e "print((select(2, require('${lua#* }').open('web'):take('login', 'key'))))"
done
shmlimit peek web login key | sed -n 's/^remaining: //p'
rm /etc/shmlimit.d/web.conf
# shellcheck disable=SC2046
dpkg -P $(cat /debs/packages) >>/debs/log 2>&1
say purged $?
END
cat >"$TMP/outside" <<'END'
mount -t tmpfs tmpfs "$1" && cd "$1" && mkdir upper work root && mount -t overlay overlay \
	-o lowerdir=/,upperdir=upper,workdir=work root && mount --rbind /dev root/dev &&
	mount -t tmpfs tmpfs root/dev/shm && mount -t proc proc root/proc && mkdir root/debs || exit 99
shift
cp "$@" root/debs
chroot root sh /debs/inside
sed -n '/rror/p' root/debs/log | sed 's/^/# /' >&2
# PHP remembers each extension that a package disabled.
find upper \( -type f -o -type l \) -name '*shmlimit*' ! -path 'upper/debs/*' ! -path '*/disabled_by_maint/*'
find upper -type d -name '*shmlimit*'
END
echo "$packages" >"$TMP/packages"
# there SCRIPT: run it as /debs/inside in such a root; its output is $TMP/story.
there() {
	cp "$1" "$TMP/inside"
	mkdir "$TMP/over"
	timeout 300 unshare --mount --pid --fork --kill-child --net --ipc sh "$TMP/outside" "$TMP/over" \
		"$debs"/*.deb "$TMP/packages" "$TMP/inside" "$TMP/guide" >"$TMP/story" 2>"$TMP/err"
	rc=$?
	rmdir "$TMP/over"
}
block tools/nginx/README.md sh 'apt install -y curl' >"$TMP/guide"
there "$TMP/come_and_go"
if [ -n "$(lacks nginx apache2 php python3 ruby node luajit lua5.3 lua5.4)" ]; then
	ok 0 "the packages come and go # SKIP they are for what is not here:$(lacks nginx apache2 php python3 ruby node luajit lua5.3 lua5.4)"
elif [ $rc -eq 99 ] || grep -q '^unshare: ' "$TMP/err"; then
	ok 0 "the packages come and go # SKIP no root to throw away here"
else
	is "$(cat "$TMP/story")" "== installed 0
shmlimit $version
1
$units/shmlimit.service
/usr/share/nginx/modules-available/mod-http-shmlimit.conf
+ segment web
+ rule login capacity 15 rate 30/m
14
13
12
11
10
9
8
8
== purged 0" "the packages are installed, do what they are for, and leave nothing when they are purged"
	[ ! -s "$TMP/err" ] || diag "$(cat "$TMP/err")"
fi

# What is pasted, by a first-time user.
cat >"$TMP/first_steps" <<'END'
cd /debs && ip link set lo up && rm -f /var/lib/man-db/auto-update && bash -e guide 2>/debs/log
END
is "$(wc -l <"$TMP/guide")" 7 "nginx's steps from packages are seven lines"
if [ $rc -eq 99 ] || grep -q '^unshare: ' "$TMP/err" || [ -n "$(lacks nginx curl ip service)" ]; then
	ok 0 "they can be taken # SKIP no root to throw away, or no$(lacks nginx curl ip service)"
else
	there "$TMP/first_steps"
	is "$rc $(grep '^+' "$TMP/story" | tr '\n' ' ')" \
		"0 + segment site mode 0660 group www-data store-keys 46 + rule page capacity 5 rate 5/m " "they can be taken"
	like "$(grep -E '^[2-5][0-9][0-9]$' "$TMP/story" | tr '\n' ' ')" '^(200 ){5,7}(429 ){1,3}$' "requests are limited"
	like "$(cat "$TMP/story")" '^page +[01] .* "(127\.0\.0\.1|::1)"$' "the log shows which client was denied"
	[ ! -s "$TMP/err" ] || diag "$(cat "$TMP/err")"
fi
done_testing
