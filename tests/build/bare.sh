#!/bin/sh
# bare: what is typed first, on a machine that has little: without a compiler, with a git that fails or is missing, without sudo, in a
# folder whose name has a blank, from a tree that cannot be written, and after root has installed.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need git tar
[ -e "$SOURCE/.git" ] || skip_all "these sources are not in git"
unset MAKEFLAGS MAKELEVEL MFLAGS O

# The sources as they are, in a folder with a blank in its name, as a commit.
tree="$TMP/a tree"
mkdir "$tree"
(cd "$SOURCE" && git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - 2>"$TMP/err") |
	tar -xf - -C "$tree"
cd "$tree" || exit
git init -q && git add -A && git -c user.name='A. Packager' -c user.email=packager@example.org -c commit.gpgsign=false commit -q -m 'a commit'

echo /o >>.git/info/exclude

# folder_of NAME...: a folder of links to all commands of the system but these, patterns of the shell.
folder_of() {
	mkdir -p "$TMP/bin$#" && rm -rf "${TMP:?}/bin$#"/*
	for folder in /usr/sbin /usr/bin /sbin /bin; do
		for file in "$folder"/*; do
			for left_out in "$@"; do
				# shellcheck disable=SC2254 # a pattern
				case ${file##*/} in $left_out) continue 2 ;; esac
			done
			ln -sf "$file" "$TMP/bin$#/"
		done
	done
	bin=$TMP/bin$#
}

# Goals: those that build with a compiler, and those that install, pack or clean.
compiled='all lib install test check-installed nginx apache build-php bundled python tests'
goals=$(make -pqrR 2>"$TMP/err" | sed -nE 's/^\.PHONY: //p' | tr ' ' '\n' | sort -u)
is "$(printf '%s\n' "$goals" | grep -cxE 'all|bundles|clean|deb|demo|dist|install|test|check')" 9 "the goals of this tree are known"

# Without a compiler. Nothing is installed: need.sh says what it would do.
folder_of 'gcc*' 'cc' 'c[89]9*' 'clang*' '*-gcc*' '*-cc' '*-clang*' 'g++*' 'c++*'
for goal in $compiled 't T=unit/take' 'build-ruby' 'build-node' 'build-lua'; do
	what="make $goal without a compiler"
	case $goal in
	python) [ -d tools/python ] || continue ;;
	build-*) [ -n "$(PATH=$bin make -n INSTALL=no CC=gcc O=o "$goal" 2>&1 | grep -E 'gcc|not built')" ] || continue ;;
	esac
	# shellcheck disable=SC2086 # a goal and its variables
	PATH=$bin INSTALL=no GROUPS=unit run make --no-print-directory O=o CC=gcc GROUPS=unit $goal
	said=$(printf '%s\n' "$out" "$err")
	case $goal in check-installed) continue ;; esac
	like "$rc $(printf '%s' "$said" | tr '\n' ' ')" '^2 .*(the library needs gcc |needs a compiler, gcc|not built: what needs )' "$what names its package"
	is "$(printf '%s\n' "$said" | grep -E 'No such file|[^.]not found|sudo ' | grep -v '^sh: ')" "" "$what tries nothing that is not there"
done
is "$(PATH=$bin make -s O=o clean 2>&1; PATH=$bin make -s O=o help | grep -c '^make ')" "$(make -s help | grep -c '^make ')" "make clean and make help need no compiler"

# Advice has sudo where that is, and for whom it helps. The state of packages is that of a machine without any.
mkdir "$TMP/none" "$TMP/with"
for tool in dpkg-query apt-cache; do printf '#!/bin/sh\nexit 1\n' >"$TMP/none/$tool"; done
printf '#!/bin/sh\nexit 1\n' >"$TMP/with/sudo"
printf '#!/bin/sh\n[ "$1" = -u ] && echo "$AS" || exec /usr/bin/id "$@"\n' >"$TMP/none/id"
chmod 755 "$TMP/none"/* "$TMP/with"/*
folder_of sudo
advice() { AS=$1 INSTALL=ask PATH="$2" tools/need.sh 'here:' one two 2>&1 | grep -o 'please run.*' | sed 's/apt-get update && //; s/sudo apt-get update && //; s/sudo sudo/sudo/'; }
install="apt-get install -y --no-install-recommends one two"
is "$(advice 0 "$TMP/none:$TMP/with:$bin")" "please run: $install" "root is advised no sudo"
is "$(advice 1000 "$TMP/none:$bin")" "please run as root: $install" "without sudo the advice has none"
is "$(advice 1000 "$TMP/none:$TMP/with:$bin")" "please run: sudo $install" "with sudo the advice has it"

# A git that fails, and none: no version, so nothing is installed, packed or built.
mkdir "$TMP/git"
printf '#!/bin/sh\necho "fatal: detected dubious ownership" >&2\nexit 128\n' >"$TMP/git/git"
printf '#!/bin/sh\necho installed >>"$TMP/installed"\n' >"$TMP/need.sh"
chmod 755 "$TMP/git/git" "$TMP/need.sh"
mv tools/need.sh "$TMP/need.kept" && cp "$TMP/need.sh" tools/need.sh
export TMP
for goal in dist deb bundles; do
	PATH=$TMP/git:$PATH run make -s --no-print-directory O=o $goal
	like "$rc $(printf '%s' "$err" | tr '\n' ' ')" '^2 fatal: detected dubious ownership version.sh: git does not read this tree' "make $goal says that git fails"
	is "$(cat "$TMP/installed" 2>/dev/null)$(ls o 2>/dev/null | grep -E '^(deb|dist|bundles?)$')" "" "make $goal does nothing then"
done
folder_of git 'git-*'
for goal in dist deb bundled; do
	PATH=$bin run make -s --no-print-directory O=o CC=true $goal
	like "$rc $(printf '%s' "$err" | tr '\n' ' ')" '^2 .*(version.sh: git is not installed|the library needs)' "make $goal without git says so, or what it needs before"
	is "$(find o -name '*.tar.gz' -size -100k 2>/dev/null)" "" "make $goal leaves no empty archive"
done
cp "$TMP/need.kept" tools/need.sh

# Another user's tree.
if [ "$(id -u)" -eq 0 ]; then
	chown -R 65534:65534 .
	run tools/version.sh plain
	like "$rc $out" '^0 .*-git' "root tells the version of another user's tree"
	chown -R 0:0 .
fi

# A blank in the path: of what each goal would run, nothing has the path but in quotes.
# shellcheck disable=SC2086 # goals
make -n -k --no-print-directory O=o INSTALL=no SKIPPED= T=unit/take $goals >"$TMP/would" 2>"$TMP/err"
is "$(sed -E "s/'[^']*'//g; s/\"[^\"]*\"//g" "$TMP/would" | grep -F "$TMP/a")" "" "no goal has the path of the tree unquoted"
like "$(wc -l <"$TMP/would") $(grep -cF "'$tree'" "$TMP/would")" '^[0-9]{3,} [1-9]' "what goals would run is known, and some of it has the path"
run make -s --no-print-directory O=o dist
is "$rc $(tar -tzf o/dist/shmlimit-*.tar.gz | grep -c '/include/shmlimit.h$')" "0 1" "make dist packs the files of a tree whose path has a blank"

# Nothing is written to the tree but O=: a compiler that makes empty files will do.
cat >"$TMP/cc" <<'END'
#!/bin/sh
for word in "$@"; do
	case $word in -E | -dumpmachine) exec gcc "$@" ;; esac
	[ "${before-}" != -o ] || : >"$word"
	before=$word
done
END
printf '#!/bin/sh\n: >"$2"\n' >"$TMP/ar"
chmod 755 "$TMP/cc" "$TMP/ar"
tools="CC=$TMP/cc AR=$TMP/ar OBJCOPY=true O=$TMP/elsewhere"
find . -path ./.git -prune -o -print | sort >"$TMP/before"
: >"$TMP/stamp"
for goal in all lib build-annexes debian dist "install DESTDIR=$TMP/d.d" "install PREFIX=/opt/p DESTDIR=$TMP/p" "uninstall PREFIX=/opt/p DESTDIR=$TMP/p"; do
	# shellcheck disable=SC2086 # words
	run make -s --no-print-directory $tools $goal
	is "$rc $err" "0 " "make ${goal%% *} works in a tree whose path has a blank, with O= elsewhere"
done
is "$(find . -path ./.git -prune -o -print | sort | diff "$TMP/before" -; find . -path ./.git -prune -o -type f -newer "$TMP/stamp" -print)" "" \
	"with O= elsewhere nothing is written to the tree"
[ -x "$TMP/d.d/usr/local/bin/shmlimit" ] && [ -z "$(find "$TMP/p" ! -type d)" ] && [ -d "$TMP/p/opt/p/bin" ]
ok $? "PREFIX= is prefix=, and uninstall knows it, too"
run make -s --no-print-directory "CC=$TMP/cc" "AR=$TMP/ar" OBJCOPY=true O=o DESTDIR="$TMP/d d" install
is "$rc $(cd "$TMP/d d" && find . | sort | cksum)" "0 $(cd "$TMP/d.d" && find . | sort | cksum)" "DESTDIR= may have a blank"
touch "$TMP/opt" "$TMP/kept"
for path in "O=$TMP/kept o" "prefix=$TMP/opt p" "PREFIX=$TMP/opt p" "libdir=$TMP/opt l"; do
	for goal in all install uninstall clean; do
		run make -s --no-print-directory "CC=$TMP/cc" "AR=$TMP/ar" OBJCOPY=true O=o DESTDIR= "$path" $goal
		like "$rc $err" "^2 .*=$TMP/(kept o|opt [pl]): a path without blanks is needed" "make $goal says that ${path%%=*}= has no blank"
	done
done
[ -f "$TMP/opt" ] && [ -f "$TMP/kept" ]
ok $? "such a make removes nothing"
if [ -f /usr/share/nginx/src/configure ]; then
	# shellcheck disable=SC2086
	run make -s --no-print-directory O=o CC=gcc o/nginx/objs/ngx_auto_config.h
	like "$rc $(tr '\n' ' ' <o/nginx/objs/ngx_http_shmlimit_module_modules.c)" '^0 .*ngx_http_shmlimit_module' "nginx's configure takes the module from such a path"
fi

# What root installs is its owner's to clean.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	mkdir "$TMP/user" && chmod 755 "$TMP" "$TMP/user" && cp -r Makefile include lib tools tests bench "$TMP/user" && chown -R 65534:65534 "$TMP/user"
	for before in '' 'make as root'; do
		[ -z "$before" ] || make -s -C "$TMP/user" "CC=$TMP/cc" "AR=$TMP/ar" OBJCOPY=true all
		make -s --no-print-directory -C "$TMP/user" "CC=$TMP/cc" "AR=$TMP/ar" OBJCOPY=true DESTDIR="$TMP/by root" install
		run setpriv --reuid 65534 --regid 65534 --clear-groups make -s --no-print-directory -C "$TMP/user" clean
		is "$rc $err $([ ! -e "$TMP/user/build" ] && echo gone)" "0  gone" "after ${before:+$before and }make install by root the tree's owner can make clean"
	done
else
	ok 0 "after make install by root the tree's owner can make clean # SKIP that takes root, and setpriv"
fi
done_testing
