#!/bin/sh
# report: run every benchmark, and make one table and one plot of what they say.
#
#	bench/report.sh BUILD FOLDER [--quick]
#
# A folder of FOLDER, named after the processor (amd-25-17: vendor, family, model), gets report.md and compare.svg;
# BUILD/bench/rows.tsv has every value.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

LC_ALL=C
export LC_ALL

build=$1
processor=$(awk -F '[ \t]*: ' '
	$1 == "vendor_id" { vendor = $2 == "AuthenticAMD" ? "amd" : $2 == "GenuineIntel" ? "intel" : tolower($2) }
	$1 == "cpu family" { family = $2 }
	$1 == "model" { print vendor "-" family "-" $2; exit }' /proc/cpuinfo)
out=$2/${processor:-$(uname -m)}
quick=${3:-}
here=${0%/*}
rows=$build/bench/rows.tsv
text=$build/bench/text
mkdir -p "$out" "$build/bench"
: >"$rows"
: >"$text"

machine="$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
load=$(cut -d ' ' -f 1 /proc/loadavg)

# ask COMMAND...: its own --quick and --rows come last. The report has the text of its first run.
ask() {
	kept=$text
	! grep -qx "# $(basename "$1")" "$text" || kept=/dev/null
	printf '# %s\n' "$(basename "$1")" | tee -a "$kept"
	# shellcheck disable=SC2086 # one option or none
	"$@" $quick --rows "$rows" >"$build/bench/one" || { cat "$build/bench/one"; exit 1; }
	tee -a "$kept" <"$build/bench/one"
	echo | tee -a "$kept"
}

# In three processes, minutes apart: where a process's memory lies makes a difference of nanoseconds, and so do others.
ask "$build/bench/decide"
for source in "$here"/*.c; do
	ask "$build/bench/$(basename "$source" .c)"
done
ask "$build/bench/decide"
ask "$here/bindings.sh" "$build"
ask "$here/web.sh" "$build"
for part in "$here"/../*/*/bench/*.sh; do ask "$part" "$build"; done
ask "$here/outage.sh" "$build"

{
	echo '# What was measured'
	echo
	echo "$machine, Linux $(uname -r), $(${CC:-gcc} --version | head -n 1)."
	echo "Commit $(git -C "$here" describe --always --dirty 2>/dev/null || echo unknown), $(date -u +%Y-%m-%d)." \
		"Load before: $load, after the last bench: $(cut -d ' ' -f 1 /proc/loadavg).${quick:+ A quick run: the figures mean nothing.}"
	echo 'Made by `make bench`; ../../README.md defines each figure.'
	echo
	awk -f "$here/targets.awk" "$rows"
	echo
	echo '```'
	cat "$text"
	echo '```'
} >"$out/report.md"
"$here/plot.sh" "$rows" "$out" "$machine"
sed -n '/^| figure/,/^$/p' "$out/report.md"
echo "report: $out/report.md"
