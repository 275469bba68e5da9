#!/bin/sh
# manual: each example of shmlimit(1) works: a command succeeds, and prints what the page shows. Programs that are not
# shmlimit's are stand-ins.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/cli/guide.inc"

mkdir -p "$TMP/bin" "$TMP/folder" "$TMP/var/log/nginx" "$TMP/var/lib/nagios" "$TMP/var/lib/node_exporter" "$TMP/var/lib/shmlimit" "$TMP/etc/shmlimit.d"
cd "$TMP/folder" || exit
for program in login send sendmail rsync systemctl; do
	echo '#!/bin/sh' >"$TMP/bin/$program"
done
printf '#!/bin/sh\nseq 2000\n' >"$TMP/bin/fetch"
# The change of the file that the page shows.
cat >"$TMP/bin/vi" <<'EOF'
#!/bin/sh
{
	awk -v RS= -v ORS='\n\n' '!/^\[search\]/' "$1" | sed '/^\[login\]/,/^$/s/^capacity = 15$/capacity = 20/'
	printf '[upload]\ncapacity = 5\nrate = 1/m\n'
} >"$1.new" && mv "$1.new" "$1"
EOF
chmod +x "$TMP"/bin/*
PATH=$TMP/bin:$TMP/folder:$PATH user=user:1001
export user
echo 'user:42@example.org' | tee customers partners >message
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do echo 203.0.113.9; done >addresses
awk -v now="$(date -u '+%d/%b/%Y:%H:%M:%S +0000')" 'BEGIN { while (n++ < 20) printf "203.0.113.%d - - [%s] \"GET / HTTP/1.1\" 200 5\n", n, now }' |
	tee sample.log >"$TMP/var/log/nginx/access.log"
plot=
! command -v gnuplot >/dev/null || plot='&'

# The page's examples as a guide. Files come first, since a crontab may precede its scripts. A block without "$ " is one
# command, whose output the page does not show.
awk '
	function show(text) { examples = examples "```console\n$ " text "\n```\n" }
	/^\.Sh/ { on = $2 == "EXAMPLES" }
	/^\.Pa/ { path = $2 }
	/^\.Bd -literal/ { inside = on; n = 0; next }
	/^\.Ed/ && inside {
		inside = 0
		text = line[1]
		for (i = 2; i <= n; i++) text = text "\n" (line[1] ~ /^[[#$]/ ? "" : "> ") line[i]
		if (line[1] ~ /^[[#]/) {
			files = files "```file " path "\n" text "\n```\n"
			if (line[1] ~ /^#/)
				files = files "```console\n$ chmod +x " path "\n```\n"
			else
				show("shmlimit apply web " path " --dry-run >.shown")
		} else if (line[1] ~ /^[@*]/) {
			for (i = 1; i <= n; i++) {
				sub(/^(@reboot|[^ ]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+) +/, "", line[i])
				show(line[i] " >.shown")
			}
		} else if (text ~ /^\$ /) {
			show(substr(text, 3))
		} else {
			show("{ " text "\n> } >.shown")
		}
	}
	inside { gsub(/\\&/, ""); gsub(/\\e/, "\\"); line[++n] = $0 }
	END { printf "%s%s", files, examples }' "$SOURCE/tools/shmlimit/shmlimit.1" |
	sed -E "s/\\b(jobs|nightly|api)\\b/$SEGMENT.&/g; s/\\bwww-data\\b/$(id -gn)/; s/(shmlimit stat .* -i 1)/\\1 --count 1/
		s/shmlimit load web/shmlimit destroy web \\&\\& &/; s/metrics --all/metrics web/; s/--plot limits.svg/$plot/
		/rule set web login/s,30/60s,30/60d," >shmlimit.1
guide shmlimit.1
block tools/shmlimit/shmlimit.1 mdoc "the segment's switch" >rules
shmlimit create "$SEGMENT.rules" --slots 64
run shmlimit apply "$SEGMENT.rules" rules --dry-run
is "$rc $(printf '%s\n' "$out" | grep -c '^+ rule ')" "0 2" "shmlimit.1: its file of rules has two"
ok $((commands < 30)) "shmlimit.1: $commands commands were run"
is "$(wc -l <"$TMP/folder/stat.log") $(test -s "$TMP/var/lib/node_exporter/shmlimit.prom" && echo exported)" "1 exported" \
	"shmlimit.1: files that its examples write are there"
done_testing
