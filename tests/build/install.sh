#!/bin/sh
# install: `make install` puts each file in its place, C and C++ programs build against them, with the example of
# shmlimit(3) among them, and `make uninstall` removes them all.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

root=$TMP/root
version=$(sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' "$SOURCE/include/shmlimit.h")
make_it() { (cd "$SOURCE" && make --no-print-directory -s O="$BUILD" "$@" DESTDIR="$root" prefix=/usr) >"$TMP/log" 2>&1; }

make_it install
ok $? "make install works"
is "$(cd "$root" && find . ! -type d ! -path './usr/share/man/man3/shmlimit*_*' | sort | tr '\n' ' ')" "./usr/bin/shmlimit ./usr/include/shmlimit.h \
./usr/include/shmlimit_gate.h ./usr/include/shmlimit_global.h ./usr/include/shmlimit_lease.h ./usr/lib/libshmlimit-gate.a ./usr/lib/libshmlimit-gate.so \
./usr/lib/libshmlimit-gate.so.1 ./usr/lib/libshmlimit-gate.so.$version ./usr/lib/libshmlimit-global.a ./usr/lib/libshmlimit-global.so \
./usr/lib/libshmlimit-global.so.1 ./usr/lib/libshmlimit-global.so.$version ./usr/lib/libshmlimit.a ./usr/lib/libshmlimit.so \
./usr/lib/libshmlimit.so.1 ./usr/lib/libshmlimit.so.$version ./usr/lib/pkgconfig/shmlimit-gate.pc ./usr/lib/pkgconfig/shmlimit-global.pc \
./usr/lib/pkgconfig/shmlimit.pc ./usr/lib/systemd/system/shmlimit-agent@.service ./usr/lib/systemd/system/shmlimit-nft@.service ./usr/lib/systemd/system/shmlimit-state@.service ./usr/lib/systemd/system/shmlimit.service \
./usr/share/bash-completion/completions/shmlimit ./usr/share/fish/vendor_completions.d/shmlimit.fish ./usr/share/man/man1/shmlimit.1 ./usr/share/man/man3/shmlimit.3 \
./usr/share/man/man7/shmlimit-security.7 ./usr/share/man/man7/shmlimit.7 \
./usr/share/zsh/site-functions/_shmlimit " "make install installs these files"
# The headers are read by the compiler here, and by sed in the Makefile.
for page in shmlimit shmlimit_gate shmlimit_global; do
	of=$page.h
	[ $page != shmlimit ] || of="$page.h shmlimit_lease.h"
	(cd "$root/usr/share/man/man3" && grep -lx "\.so man3/$page.3" -- *) | sed 's/\.3$//' >"$TMP/links"
	printf '#include <%s>\n' $of | gcc -E -I "$SOURCE/include" - |
		awk -v headers="$of" '/^#/ { name = $3; gsub(/^.*\/|"$/, "", name); of = index(" " headers " ", " " name " "); next } of' |
		tr -s ' \n' ' ' | tr ';' '\n' | sed -nE 's/^ ?[a-z][^()]*[ *](shmlimit_[a-z_]+) ?\(.*/\1/p' | sort >"$TMP/functions"
	is "$(sort "$TMP/links")" "$(cat "$TMP/functions")" "each function of $page.h has a manual page that leads to $page.3"
	[ -s "$TMP/links" ] && grep -q "^\.Dt $(echo $page | tr a-z A-Z) 3" "$root/usr/share/man/man3/$page.3"
	ok $? "$page.3 is installed, and functions lead to it"
done

PKG_CONFIG_PATH=$root/usr/lib/pkgconfig
PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
is "$(pkg-config --modversion shmlimit)" "$version" "pkg-config knows the version"

# The page's example names a segment of its own: replace that by the test's.
example() { block lib/shmlimit.3.in mdoc; }
example | sed "s/\"example\"/\"$SEGMENT.example\"/g" >"$TMP/example.c"
like "$(cat "$TMP/example.c")" 'int main\(' "shmlimit.3 has a whole program as its example"

flags=$(pkg-config --cflags --libs shmlimit)
# shellcheck disable=SC2086
gcc -std=c11 -Wall -Wextra -Werror -pedantic "$TMP/example.c" $flags -o "$TMP/example"
ok $? "the manual's example compiles as C against what was installed"
run env LD_LIBRARY_PATH="$root/usr/lib" "$TMP/example"
is "$rc" 0 "the manual's example runs with the shared library"
# shellcheck disable=SC2046
gcc -std=c11 "$TMP/example.c" -static $(pkg-config --static --cflags --libs shmlimit) -o "$TMP/example.static"
run "$TMP/example.static"
is "$rc" 0 "the manual's example runs linked statically"
printf '#include <shmlimit.h>\nint main() { shmlimit *l = nullptr; shmlimit_close(l); return shmlimit_take(l, 0, "k", 1, 1, nullptr) == -EINVAL_; }\n' |
	sed 's/-EINVAL_/-1000/' >"$TMP/plus.cc"
# shellcheck disable=SC2086
g++ -Wall -Wextra -Werror -pedantic "$TMP/plus.cc" $flags -o "$TMP/plus"
ok $? "the header compiles as C++"
run env LD_LIBRARY_PATH="$root/usr/lib" "$TMP/plus"
is "$rc" 0 "a C++ program links with the library"

# The other library, which links this one.
printf '#include <shmlimit_global.h>\nint main(void) { shmlimit_global_close(0); return 0; }\n' >"$TMP/global.c"
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror -pedantic "$TMP/global.c" $(pkg-config --cflags --libs shmlimit-global) -o "$TMP/global" &&
	g++ -x c++ -Wall -Wextra -Werror -pedantic "$TMP/global.c" $(pkg-config --cflags --libs shmlimit-global) -o "$TMP/global"
ok $? "the library for many hosts can be built against in C and C++"
run env LD_LIBRARY_PATH="$root/usr/lib" "$TMP/global"
is "$rc" 0 "a program of the library for many hosts runs"
# shellcheck disable=SC2046
gcc -std=c11 "$TMP/global.c" -Wl,-Bstatic -lshmlimit-global -lshmlimit -Wl,-Bdynamic \
	$(pkg-config --static --cflags --libs shmlimit-global) -o "$TMP/global.static"
run "$TMP/global.static"
is "$rc" 0 "a program of the library for many hosts runs from the archives"

# The gate, by its page's example.
block lib/gate/shmlimit_gate.3.in mdoc 'int main' |
	sed "s/segment=example/segment=$SEGMENT.gate/" >"$TMP/gate.c"
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror -pedantic "$TMP/gate.c" $(pkg-config --cflags --libs shmlimit-gate) -o "$TMP/gate"
ok $? "the example of shmlimit_gate.3 compiles against what was installed"
run env LD_LIBRARY_PATH="$root/usr/lib" "$TMP/gate"
like "$rc $out" '^0 welcome
RateLimit-Policy: "login";q=5;w=60
RateLimit: "login";r=4;t=' "the example of shmlimit_gate.3 runs with no command before it"
# shellcheck disable=SC2046
gcc -std=c11 "$TMP/gate.c" -Wl,-Bstatic -lshmlimit-gate -lshmlimit -Wl,-Bdynamic \
	$(pkg-config --static --cflags --libs shmlimit-gate) -o "$TMP/gate.static"
run "$TMP/gate.static"
like "$rc $out" '^0 welcome' "the example of shmlimit_gate.3 runs linked to the archives"
printf '#include <shmlimit_gate.h>\nint main() { shmlimit_gate_close(nullptr); }\n' >"$TMP/gate.cc"
# shellcheck disable=SC2046
g++ -Wall -Wextra -Werror -pedantic "$TMP/gate.cc" $(pkg-config --cflags --libs shmlimit-gate) -o "$TMP/gate"
ok $? "its header compiles as C++"

# A gate that leases loads the library for many hosts, which it is not linked with.
sed 's|create=yes|& backend=redis://127.0.0.1:1 fail=open|; s|error = shmlimit_gate_ask|shmlimit_gate_report(gate, hear, NULL); &|' \
	"$TMP/gate.c" | sed 's|^int main|static void hear(void *arg, int bad, const char *text) { (void)arg; printf("%d %s\\n", bad, text); }\n&|' \
	>"$TMP/leases.c"
# shellcheck disable=SC2046
gcc -std=c11 "$TMP/leases.c" $(pkg-config --cflags --libs shmlimit-gate) -o "$TMP/leases" && "$BUILD/bin/shmlimit" rule remove \
	"$SEGMENT.gate" login && "$BUILD/bin/shmlimit" rule set "$SEGMENT.gate" login --algorithm lease --capacity 5 --rate 5/m
sed -i 's/rate=5\/minute //' "$TMP/leases.c"
# shellcheck disable=SC2046
gcc -std=c11 "$TMP/leases.c" $(pkg-config --cflags --libs shmlimit-gate) -o "$TMP/leases"
run env LD_LIBRARY_PATH="$root/usr/lib" "$TMP/leases"
like "$rc $out" '^0 1 backend.*
welcome' "with backend= the other library is loaded, and its failure is answered"
mkdir "$TMP/some" && cp "$root"/usr/lib/libshmlimit.so.1* "$root"/usr/lib/libshmlimit-gate.so.1* "$TMP/some"
run env LD_LIBRARY_PATH="$TMP/some" "$TMP/leases"
like "$rc $out" '^0 1 .*rule login: it is a lease, and libshmlimit-global.so.1 is not installed: ' "where it is missing that is reported"

(cd "$SOURCE" && make --no-print-directory -s O="$BUILD" install DESTDIR="$TMP/other" prefix=/opt) >"$TMP/log" 2>&1
is "$(sed -n 's/^Exec.*=//p' "$TMP/other/opt/lib/systemd/system/shmlimit.service" | sort -u)" \
	"/opt/bin/shmlimit apply --all" "the service starts the command where it was installed"

if command -v systemd-analyze >/dev/null; then
	# It looks for the program that a unit starts, and for the manual, at their places in the system.
	mkdir "$TMP/units"
	for unit in shmlimit.service shmlimit-state@web.service shmlimit-agent@web.service shmlimit-nft@web.service; do
		sed "s|/usr/bin/shmlimit|$BUILD/bin/shmlimit|; /^Documentation/d" \
			"$SOURCE/tools/systemd/$(echo $unit | sed 's/@web/@/')" >"$TMP/units/$unit"
		run systemd-analyze verify "$TMP/units/$unit"
		# It reports faults of other units of the system too.
		is "$rc $(printf '%s\n' "$out" "$err" | grep shmlimit)" "0 " "systemd has nothing against $unit"
	done
fi

touch "$root/usr/include/other.h" "$root/usr/share/man/man3/other.3"
make_it uninstall
is "$(cd "$root" && find . ! -type d | sort | tr '\n' ' ')" "./usr/include/other.h ./usr/share/man/man3/other.3 " \
	"make uninstall removes what make install installed, and nothing else"

# Into the system, where root may lay a folder over it and go there. The loader knew none of the libraries.
cat >"$TMP/inside" <<'END'
cd "$1" || exit
quiet() { "$@" >/log 2>&1 || cat /log; }
quiet make -s O="$2" install
cat /log
export PYTHONPATH="$1/tools/python" PYTHONDONTWRITEBYTECODE=1
cc "$3" $(PKG_CONFIG_PATH=/usr/local/lib/pkgconfig pkg-config --cflags --libs shmlimit-gate) -o /program && /program && echo linked
python3 -c 'import shmlimit; print(shmlimit.Limiter.__name__)'
quiet make -s O="$2" install libdir=/opt/elsewhere/lib
cat /log
quiet make -s O="$2" uninstall libdir=/opt/elsewhere/lib
quiet make -s O="$2" uninstall
ldconfig -p | grep -c libshmlimit
rm -f /log /program
END
cat >"$TMP/outside" <<'END'
over=$1
shift
mount -t tmpfs tmpfs "$over" && cd "$over" && mkdir upper work root && mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root &&
	mount --rbind /dev root/dev && mount -t proc proc root/proc || exit 99
for folder in "$1" "$2" "${3%/*}"; do mkdir -p "root$folder" && mount --bind "$folder" "root$folder" || exit 99; done
chroot root sh "${0%/*}/inside" "$@"
find upper ! -type d ! -name ld.so.cache ! -name aux-cache | sort
END
printf '#include <shmlimit_gate.h>\nint main(void) { shmlimit_gate_close(0); return 0; }\n' >"$TMP/program.c"
what="make install tells the loader, so that programs and Python find the libraries, and make uninstall takes that back"
mkdir "$TMP/over"
run env -u MAKEFLAGS -u LD_LIBRARY_PATH -u PKG_CONFIG_SYSROOT_DIR unshare --mount sh "$TMP/outside" "$TMP/over" "$SOURCE" "$BUILD" "$TMP/program.c"
if [ $rc -eq 99 ] || printf '%s' "$err" | grep -q '^unshare: '; then
	ok 0 "$what # SKIP no root to throw away here"
elif ldconfig -p 2>/dev/null | grep -q libshmlimit; then
	ok 0 "$what # SKIP this system has the libraries already"
else
	is "$out$err" "linked
Limiter
the loader does not find the libraries in /opt/elsewhere/lib: run ldconfig as root, or set LD_LIBRARY_PATH=/opt/elsewhere/lib
0" "$what"
fi
done_testing
