#!/bin/sh
# plot.sh ROWS FOLDER MACHINE: the README's picture, compare.svg, from the rows of all benches.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

# PEER<TAB>1<TAB>2<TAB>4 processes, fastest first; on a logarithmic scale from 10^3 to 10^8. Beside each peer stands what 4
# processes decide, and how many times as much shmlimit does.
awk -F '\t' '$1 == "compare" && $4 == "decisions/s" { v[$2, $3] = $5; seen[$2] = 1 }
	END { for (p in seen) print v[p, 1] "\t" p "\t" v[p, 1] "\t" v[p, 2] "\t" v[p, 4] }' "$1" | sort -gr | cut -f 2- |
	awk -F '\t' -v title="Decisions a second, $3" '
	function place(decisions) {
		return sprintf("%.1f", decisions > 1000 ? 90 * (log(decisions) / log(10) - 3) : 0)
	}
	function short(n) {
		return n >= 1e6 ? sprintf("%.3g M", n / 1e6) : sprintf("%.3g k", n / 1e3)
	}
	BEGIN { split("#1b6ca8 #68a4d0 #c3dcee", color, " ") }
	{
		if ($1 == "shmlimit")
			ours = $4
		name[NR] = $1
		last[NR] = $4
		for (i = 1; i <= 3; i++)
			bars[NR] = bars[NR] sprintf("<rect y=\"%d\" width=\"%s\" height=\"6\" fill=\"%s\"/>", 7 * i - 6, place($(i + 1)), color[i])
	}
	END {
		height = 26 * NR + 90
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n", height
		print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
		printf "<text x=\"430\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">%s</text>\n", title
		for (i = 1; i <= 3; i++)
			printf "<rect x=\"%d\" y=\"38\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" y=\"49\">%d process%s</text>\n",
				130 * i + 120, color[i], 130 * i + 138, 2 ^ (i - 1), (i > 1 ? "es" : "")
		printf "<text x=\"755\" y=\"49\" text-anchor=\"end\" fill=\"#59636e\">4 processes</text><text x=\"846\" y=\"49\" text-anchor=\"end\" fill=\"#59636e\">slower by</text>\n"
		for (i = 3; i <= 8; i++)
			printf "<path d=\"M%s,60 V%d\" stroke=\"#ddd\"/><text x=\"%s\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
				235 + place(10 ^ i), height - 24, 235 + place(10 ^ i), height - 6, short(10 ^ i)
		for (p = 1; p <= NR; p++) {
			printf "<g transform=\"translate(235,%d)\"><text x=\"-8\" y=\"15\" text-anchor=\"end\">%s</text>%s", 26 * p + 38, name[p], bars[p]
			printf "<text x=\"520\" y=\"15\" text-anchor=\"end\">%s</text>", short(last[p])
			if (last[p] < ours)
				printf "<text x=\"605\" y=\"15\" text-anchor=\"end\">%s ×</text>", ours / last[p] < 9.95 ? sprintf("%.1f", ours / last[p]) : sprintf("%d", ours / last[p] + 0.5)
			print "</g>"
		}
		print "</svg>"
	}' >"$2/compare.svg"
