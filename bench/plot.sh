#!/bin/sh
# plot.sh ROWS FOLDER MACHINE: the README's picture, compare.svg, from the rows of all benches.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

peers=$(mktemp)
trap 'rm -f "$peers"' EXIT

# peer<TAB>1<TAB>2<TAB>4 processes, fastest first.
awk -F '\t' '$1 == "compare" && $4 == "decisions/s" { v[$2, $3] = $5; seen[$2] = 1 }
	END { for (p in seen) print v[p, 1] "\t" p "\t" v[p, 1] "\t" v[p, 2] "\t" v[p, 4] }' "$1" |
	sort -gr | cut -f 2- >"$peers"

gnuplot <<EOT
set terminal svg size 860,460 background rgb 'white' font 'sans-serif,13'
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
set datafile separator '\t'
set output '$2/compare.svg'
set title "Decisions a second, $3" noenhanced
set logscale y
set yrange [1000:2e8]
set format y '10^{%T}'
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.9 border -1
set xtics rotate by -30 left noenhanced
set bmargin 7
set rmargin 10
set key top right
plot '$peers' using 2:xtic(1) title '1 process' lc rgb '#1b6ca8', \
	'' using 3 title '2 processes' lc rgb '#68a4d0', '' using 4 title '4 processes' lc rgb '#c3dcee'
EOT
