#!/bin/sh
# plot.sh ROWS FOLDER MACHINE: the README's picture, compare.svg, from the rows of all benches.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

# PEER<TAB>1<TAB>2<TAB>4 processes, fastest first; on a logarithmic scale from 10^3 to 10^8.
awk -F '\t' '$1 == "compare" && $4 == "decisions/s" { v[$2, $3] = $5; seen[$2] = 1 }
	END { for (p in seen) print v[p, 1] "\t" p "\t" v[p, 1] "\t" v[p, 2] "\t" v[p, 4] }' "$1" | sort -gr | cut -f 2- |
	awk -F '\t' -v title="Decisions a second, $3" '
	function place(decisions) {
		return sprintf("%.1f", decisions > 1000 ? 116 * (log(decisions) / log(10) - 3) : 0)
	}
	BEGIN { split("#1b6ca8 #68a4d0 #c3dcee", color, " ") }
	{
		peers = peers sprintf("<g transform=\"translate(250,%d)\"><text x=\"-8\" y=\"15\" text-anchor=\"end\">%s</text>", 26 * NR + 38, $1)
		for (i = 1; i <= 3; i++)
			peers = peers sprintf("<rect y=\"%d\" width=\"%s\" height=\"6\" fill=\"%s\"/>", 7 * i - 6, place($(i + 1)), color[i])
		peers = peers "</g>\n"
	}
	END {
		height = 26 * NR + 90
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n", height
		print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
		printf "<text x=\"430\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">%s</text>\n", title
		for (i = 1; i <= 3; i++)
			printf "<rect x=\"%d\" y=\"38\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" y=\"49\">%d process%s</text>\n",
				150 * i + 100, color[i], 150 * i + 118, 2 ^ (i - 1), (i > 1 ? "es" : "")
		for (i = 3; i <= 8; i++)
			printf "<path d=\"M%s,60 V%d\" stroke=\"#ddd\"/><text x=\"%s\" y=\"%d\" text-anchor=\"middle\">10<tspan dy=\"-6\" font-size=\"10\">%d</tspan></text>\n",
				250 + place(10 ^ i), height - 24, 250 + place(10 ^ i), height - 6, i
		printf "%s</svg>\n", peers
	}' >"$2/compare.svg"
