#!/bin/sh
# plots: four pictures from the rows of all benches.
#
#	bench/plots.sh ROWS FOLDER MACHINE
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

rows=$1
out=$2
machine=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# peer<TAB>1<TAB>2<TAB>4 processes, fastest first.
awk -F '\t' '$1 == "compare" && $4 == "decisions/s" { v[$2, $3] = $5; seen[$2] = 1 }
	END { for (p in seen) print v[p, 1] "\t" p "\t" v[p, 1] "\t" v[p, 2] "\t" v[p, 4] }' "$rows" |
	sort -gr | cut -f 2- >"$dir/compare"

# curve PROGRAM-SUBJECT: keys<TAB>ns.
curve() {
	awk -F '\t' -v subject="$1" '$1 == "keys" && $2 == subject && $4 == "ns" { print $3 "\t" $5 }' "$rows"
}
curve floor >"$dir/floor"
curve 'random line' | paste "$dir/floor" - | awk '{ print $1 "\t" $2 + $4 }' >"$dir/ideal"
curve uniform >"$dir/uniform"
curve Zipf >"$dir/zipf"
curve 'mutex zone, uniform' >"$dir/zone"

# crew NAME SUBJECT: processes<TAB>decisions a second.
crew() {
	awk -F '\t' -v subject="$2" '$1 == "processes" && $2 == subject && $4 == "decisions/s" { print $3 "\t" $5 }' \
		"$rows" >"$dir/$1"
}
crew cas 'bare CAS, one word'
crew denied 'denied, one key'
crew allowed 'allowed, one key'
crew spread 'allowed, spread'
crew zone_denied 'zone: denied, one key'
crew zone_allowed 'zone: allowed, one key'

# hosts NAME SUBJECT: hosts<TAB>share of the limit not used, percent<TAB>commands a decision.
hosts() {
	awk -F '\t' -v subject="$2" '$1 == "global_sim" && $2 == subject && $4 == "use" { use[$3] = $5 }
		$1 == "global_sim" && $2 == subject && $4 == "commands / decision" {
			print $3 "\t" 100 * (1 - use[$3]) "\t" $5
		}' "$rows" >"$dir/$1"
}
hosts half 'even, demand 0.5'
hosts once 'even, demand 1'
hosts twice 'even, demand 2'
hosts often 'even, demand 10'
hosts zipf_twice 'Zipf, demand 2'

gnuplot <<EOT
set terminal svg size 860,460 background rgb 'white' font 'sans-serif,13'
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
set datafile separator '\t'

set output '$out/compare.svg'
set title "Decisions a second, $machine" noenhanced
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
plot '$dir/compare' using 2:xtic(1) title '1 process' lc rgb '#1b6ca8', \
	'' using 3 title '2 processes' lc rgb '#68a4d0', '' using 4 title '4 processes' lc rgb '#c3dcee'

set output '$out/keys.svg'
set title "What a decision costs, $machine" noenhanced
unset logscale
set logscale x
set yrange [0:*]
set format x '10^{%T}'
set format y '%g'
set xtics norotate autofreq enhanced
set bmargin 4
set rmargin 5
set xlabel 'live keys'
set ylabel 'ns'
set key top left
plot '$dir/zone' with linespoints title 'mutex zone, uniform' lc rgb '#999999' lw 2 pt 7, \
	'$dir/uniform' with linespoints title 'shmlimit, uniform' lc rgb '#1b6ca8' lw 2 pt 7, \
	'$dir/zipf' with linespoints title 'shmlimit, Zipf 0.99' lc rgb '#68a4d0' lw 2 pt 7, \
	'$dir/ideal' with lines title 'floor + one random line' lc rgb '#cc4400' lw 2 dt 2

set output '$out/processes.svg'
set title "Decisions a second of all processes, $machine" noenhanced
set logscale x 2
set logscale y
set yrange [*:*]
set format x '%g'
set format y '10^{%T}'
set xlabel 'processes'
unset ylabel
set rmargin 24
set key outside right
plot '$dir/cas' with lines title 'bare CAS, one word' lc rgb '#cc4400' lw 2 dt 2, \
	'$dir/denied' with linespoints title 'denied, one key' lc rgb '#1b6ca8' lw 2 pt 7, \
	'$dir/allowed' with linespoints title 'allowed, one key' lc rgb '#68a4d0' lw 2 pt 7, \
	'$dir/spread' with linespoints title 'allowed, spread' lc rgb '#7a9a3a' lw 2 pt 7, \
	'$dir/zone_denied' with linespoints title 'zone: denied' lc rgb '#666666' lw 2 pt 7, \
	'$dir/zone_allowed' with linespoints title 'zone: allowed' lc rgb '#aaaaaa' lw 2 pt 7

set output '$out/global.svg'
unset label
set multiplot layout 1,2
set logscale x 10
set format x '10^{%T}'
set format y '%g'
set xlabel 'hosts'
set key inside top left
unset logscale y
set rmargin 4
set yrange [-5:20]
set title 'Not used of the limit, %'
plot '$dir/half' using 1:2 with linespoints title 'demand 1/2' lc rgb '#999999' lw 2 pt 7, \
	'$dir/once' using 1:2 with linespoints title 'demand 1' lc rgb '#7a9a3a' lw 2 pt 7, \
	'$dir/twice' using 1:2 with linespoints title 'demand 2' lc rgb '#1b6ca8' lw 2 pt 7, \
	'$dir/often' using 1:2 with linespoints title 'demand 10' lc rgb '#68a4d0' lw 2 pt 7, \
	'$dir/zipf_twice' using 1:2 with linespoints title 'demand 2, Zipf' lc rgb '#cc4400' lw 2 pt 7
set logscale y
set yrange [*:*]
set format y '10^{%T}'
set title 'Commands to the engine, a decision'
plot '$dir/half' using 1:3 with linespoints notitle lc rgb '#999999' lw 2 pt 7, \
	'$dir/once' using 1:3 with linespoints notitle lc rgb '#7a9a3a' lw 2 pt 7, \
	'$dir/twice' using 1:3 with linespoints notitle lc rgb '#1b6ca8' lw 2 pt 7, \
	'$dir/often' using 1:3 with linespoints notitle lc rgb '#68a4d0' lw 2 pt 7, \
	'$dir/zipf_twice' using 1:3 with linespoints notitle lc rgb '#cc4400' lw 2 pt 7
unset multiplot
EOT
