#!/bin/sh
# html.sh OUT PAGE...: render the documentation as HTML into the folder OUT. The pages are manual pages (mandoc) and Markdown
# files (lowdown), with paths from the project's folder. Manual pages go to OUT/man, all others where they are in the project.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

out=$1
shift
for tool in mandoc lowdown; do
	command -v $tool >/dev/null || { echo "$tool is not installed (on Debian: apt install $tool)" >&2; exit 1; }
done
rm -rf "$out"
mkdir -p "$out/man"
cat >"$out/style.css" <<'END'
:root { color-scheme: light dark; }
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }
pre, table { overflow-x: auto; display: block; }
pre { padding: 0.6rem 0.8rem; background: rgba(128, 128, 128, 0.12); }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
th, td { padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; vertical-align: top; }
table.head, table.foot { display: table; width: 100%; }
img { max-width: 100%; }
a.permalink { color: inherit; text-decoration: none; }
END

# A manual page names others as text, such as shmlimit(7): each becomes a link.
for page; do
	case $page in *.[1-8]) printf '%s\n' "${page##*/}" ;; esac
done | sed -E 's,(.*)\.(.),s|\\b\1\\(\2\\)|<a href="\1.\2.html">\&</a>|g,' >"$out/links.sed"

for page; do
	case $page in
	*.[1-8])
		mandoc -T html -O style=../style.css "$page" | sed -E -e '/<td|<title/b' -f "$out/links.sed" >"$out/man/${page##*/}.html"
		;;
	*.md)
		top=$(printf '%s' "$page" | sed 's,[^/]*/,../,g; s,[^/]*$,,')
		mkdir -p "$out/$(dirname "$page")"
		lowdown -s -T html -M "title=$(sed -n '/^# /{s///p;q}' "$page")" -M "css=${top}style.css" "$page" |
			sed -E "s,href=\"([^\":]*)\\.md([#\"]),href=\"\\1.html\\2,g; s,href=\"([^\":]*/)?([a-z_-]+\\.[1-8])(\\.in)?\",href=\"${top}man/\\2.html\",g
				s,href=\"([^\":]*/)?include/(shmlimit[a-z_]*)\\.h\",href=\"${top}man/\\2.3.html\",g" \
				>"$out/${page%.md}.html"
		;;
	esac
done
cp "$out/README.html" "$out/index.html"
rm "$out/links.sed"

# What the pages link to besides pages: pictures, programs, the license.
find "$out" -name '*.html' | while read -r html; do
	folder=$(dirname "$html")
	sed -nE 's/(href|src)="([^":#]+)[^"]*"/\n=\2\n/gp' "$html" | sed -n 's/^=//p' | while read -r link; do
		wanted=$(realpath -m --relative-to="$out" "$folder/$link")
		[ -e "$out/$wanted" ] || [ ! -e "$wanted" ] || { mkdir -p "$(dirname "$out/$wanted")" && cp -r "$wanted" "$out/$wanted"; }
	done
done
