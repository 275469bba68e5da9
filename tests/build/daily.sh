#!/bin/sh
# daily: what make says and does where packages are missing, what tools/need.sh installs, and what a test in shell says
# when it fails.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

# What the caller of the tests says to make does not reach what is tried here.
unset MAKEFLAGS MAKELEVEL INSTALL T
make_it() { run make -s -C "$SOURCE" --no-print-directory O="$TMP/build" "$@"; }
has() { printf '%s\n' "$out" | grep -q -e "$1" && echo yes || echo no; }

# tests/tap.sh is read by others, and run by none.
is "$(cd "$SOURCE" && grep -ohE '(tests|tools|bench)/[a-z_/]+\.sh' Makefile tests/tests.mk tools/*.mk tools/*/*.mk | sort -u |
	while read -r script; do [ -x "$script" ] || echo "$script"; done)" "tests/tap.sh" "make can run each script that it runs"

# ---- make, where the compiler finds no header of some packages ----

make_it -n all
is "$rc $(has "$TMP/build/libshmlimit.a") $(has "$TMP/build/bin/shmlimit") $(has 'not built')" "0 yes yes no" \
	"make builds library and command where it has all that they need"
for library in libshmlimit libshmlimit-gate libshmlimit-global; do
	make_it -n "$TMP/build/$library.so"
	is "$rc $(has "-o $TMP/build/$library.so.[0-9]")" "0 yes" "make builds $library.so, by the name that a linker looks for"
done
make_it -n all headers_command='nowhere/a.h:liba-dev zlib.h:zlib1g-dev nowhere/b.h:libb-dev'
is "$rc $(has "$TMP/build/libshmlimit.a") $(has "$TMP/build/bin/shmlimit")" "0 yes no" \
	"make builds the library where only the command's packages are missing"
like "$out" 'not built: the command; it needs liba-dev libb-dev' "make says which packages the command lacks"
make_it -n all headers_global=nowhere/hi.h:libhi-dev
is "$rc $(has "$TMP/build/libshmlimit.a") $(has "$TMP/build/libshmlimit-global.a")" "0 yes no" \
	"make builds the library for one host where the package of the one for many hosts is missing"
like "$out" 'not built: the library for many hosts; it needs libhi-dev' "make says which package the library for many hosts lacks"
make_it all headers_lib='stdlib.h:libc6-dev nowhere/ck.h:libck-dev'
like "$rc $err" '^2 the library needs libck-dev$' "make fails with the package's name where the library's own is missing"
make_it -n tests GROUPS='unit cli' headers_command=nowhere/a.h:liba-dev
like "$out" 'left out: tests of cli; they need.*liba-dev' "tests of a command that cannot be built are left out, which is said"
make_it list GROUPS='unit cli' headers_command=nowhere/a.h:liba-dev
is "$(has unit/take) $(has cli/)" "yes no" "tests that are left out are not run"
make_it t
like "$rc $err" '^2 usage: make t T=unit/take' "make t without a test says how it is used"
make_it -n test
# INSTALL=ask only says what is missing.
is "$rc $(has '\(^\|[^k] \)tools/need.sh')" "0 no" "make test installs nothing"

# ---- what a run skips is said at its end ----

mkdir -p "$TMP/tests/unit"
printf '#!/bin/sh\necho "ok 1 - a"\necho "ok 2 - b # SKIP no gdb"\necho "ok 3 - c # SKIP no gdb"\necho 1..3\nexit 3\n' >"$TMP/tests/unit/some.t"
printf '#!/bin/sh\necho "1..0 # SKIP no jq"\n' >"$TMP/tests/unit/all.t"
chmod +x "$TMP"/tests/unit/*.t
for t in some all; do
	SKIPPED=$TMP/skipped "$SOURCE/tests/note_skips.sh" "$TMP/tests/unit/$t.t" >"$TMP/said"
	is "$? $(cat "$TMP/said")" "$("$TMP/tests/unit/$t.t" >"$TMP/plain"; echo $?) $(cat "$TMP/plain")" \
		"$t.t prints the same, and ends with the same status, where its skips are noted"
done
is "$(cat "$TMP/skipped")" "unit/some: no gdb
unit/some: no gdb
unit/all: no jq" "each skip is noted with its reason"
run make -s -C "$SOURCE" --no-print-directory O="$TMP" -n test
like "$out" 'note_skips.sh' "make test notes what its tests skip"
# Packages of what any of its tests needs, none of which this system has.
mkdir "$TMP/none" && printf '#!/bin/sh\nexit 1\n' >"$TMP/none/dpkg-query" && chmod 755 "$TMP/none/dpkg-query"
# ends_with FILE: what make test says at its end, where FILE has what was skipped.
ends_with() { run env PATH="$TMP/none:$PATH" make -s -C "$SOURCE" --no-print-directory skipped SKIPPED="$1"; }
ends_with "$TMP/skipped"
is "$rc $(printf '%s\n' "$out" | sed -n '1,2p; /^  jq /p; /^to install them: .* jq /s/:.*//p')" "0 skipped: unit/all: no jq (1)
skipped: unit/some: no gdb (2)
  jq                        tests/cli
to install them" "make test ends with what was skipped, and the packages that would run it"
: >"$TMP/skipped"
ends_with "$TMP/skipped"
is "$rc $out" "0 " "make test ends with nothing more where nothing was skipped"

# ---- tools/need.sh, on a system of our own making ----

mkdir "$TMP/bin" "$TMP/sbin"
cat >"$TMP/bin/dpkg-query" <<'END'
#!/bin/sh
case $* in *\ here*) echo installed ;; *) exit 1 ;; esac
END
cat >"$TMP/bin/apt-get" <<'END'
#!/bin/sh
echo "$*" >>"$TMP/apt"
/usr/sbin/policy-rc.d nginx start
echo "may a service be started: $?" >>"$TMP/apt"
END
printf '#!/bin/sh\nexit 1\n' >"$TMP/bin/sudo"
chmod 755 "$TMP"/bin/*
export TMP
need_it() { : >"$TMP/apt"; run env PATH="$TMP/bin:/usr/bin:/bin" "$@" "$SOURCE/tools/need.sh" 'the build:' here1 gone1 'the tests:' here2 gone2 gone1; }
listed='
  gone1                     the build
  gone2                     the tests'

need_it INSTALL=no
is "$rc $out" "0 missing packages, and what is skipped, left out or fails without them:$listed
to install them: apt-get install --no-install-recommends gone1 gone2" \
	"with INSTALL=no need.sh says once what is missing, and for what"
is "$(cat "$TMP/apt")" "" "with INSTALL=no need.sh installs nothing"
run env PATH="$TMP/bin:/usr/bin:/bin" "$SOURCE/tools/need.sh" 'the build:' here1 here2
is "$rc $out$err" "0 " "need.sh says nothing where nothing is missing"
if [ "$(id -u)" -ne 0 ]; then
	need_it -u INSTALL
	is "$rc $(cat "$TMP/apt")" "1 " "without root and sudo need.sh installs nothing"
	like "$err" 'please run: sudo apt-get install .* gone1 gone2' "without root and sudo need.sh says what to run"
elif unshare --mount true 2>/dev/null; then
	need_it unshare --mount sh -c 'mount --bind "$TMP/sbin" /usr/sbin && exec "$0" "$@"'
	is "$rc $out" "0 missing packages, which are installed now, and what needs them:$listed" \
		"need.sh says what it will install, and for what"
	is "$(cat "$TMP/apt")" "update -qq
may a service be started: 101
install -y --no-install-recommends gone1 gone2 -qq
may a service be started: 101" "need.sh installs what is missing, and no service is started"
	is "$(ls "$TMP/sbin")" "" "need.sh leaves the system's policy as it was"
fi

# ---- What a test in shell says ----

mkdir -p "$TMP/kit/tests/cli"
cp "$SOURCE/tests/tap.sh" "$TMP/kit/tests/"
cat >"$TMP/kit/tests/cli/fails.t" <<'END'
#!/bin/sh
. "${0%/*}/../tap.sh"
is a b "two strings are equal"
starts() {
	like "$1" "^a" "it starts with a"
}
starts b
need no-such-command
END
chmod 755 "$TMP/kit/tests/cli/fails.t"
run env SOURCE="$SOURCE" "$TMP/kit/tests/cli/fails.t"
is "$rc $out" "0 not ok 1 - two strings are equal
not ok 2 - it starts with a
1..0 # SKIP no-such-command is not installed" "a test is skipped where a command that it needs is missing"
command -v bash >/dev/null && is "$(printf '%s\n' "$err" | grep tests/)" "# failed at tests/cli/fails.sh:3
# failed at tests/cli/fails.sh:5
#   called at tests/cli/fails.sh:7" "a test in shell that fails says at which line, and where that was called"

undeclared=
for script in "$SOURCE"/tests/cli/*.sh; do
	for command in jq curl; do
		! grep -qE "^[^#]*(^|[^a-zA-Z_./-])$command( |\$)" "$script" || grep -qE "^need .*\\b$command\\b" "$script" ||
			undeclared="$undeclared ${script##*/}:$command"
	done
done
missing=
for folder in "$SOURCE"/tests/*/; do
	grep -q "^| $(basename "$folder") | " "$SOURCE/tests/README.md" || missing="$missing $(basename "$folder")"
done
is "$missing" "" "tests/README.md has each kind of test"
is "$undeclared" "" "tests of the command say which other commands they need, so that they are skipped without"
done_testing
