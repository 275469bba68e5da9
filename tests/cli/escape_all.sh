#!/bin/sh
# escape_all: no operand, value of an option or line of a file that a command is given comes back as anything but text:
# every command and option that --help lists, each section, key and value of a rules file, and each field of a log.
#
# SPDX-License-Identifier: BSD-2-Clause
OWN_SHM=yes
. "${0%/*}/../tap.sh"
cd "$TMP" || exit

# ESC [, DEL, and CSI as a byte and as the character U+009B; a carriage return, and a line feed with a false message.
evil=$(printf 'e\033[31m\177\233\302\2332J\r\nFALSE')
export LC_ALL=C.UTF-8

# Bytes that a terminal acts on, C1 characters, lines that the input made, and what is not UTF-8.
harmless() {
	! LC_ALL=C grep -aqP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|^FALSE' "$1" && iconv -f UTF-8 -t UTF-8 <"$1" >/dev/null 2>&1
}

# A judge that finds nothing would let everything pass. (Backslashes are printf's.)
passed=
for bytes in 'a\033[2Jb' 'a\000b' 'a\010b' 'a\rb' 'a\177b' 'a\302\233b' 'a\233b' 'a\nFALSE'; do
	printf "$bytes\n" >out
	! harmless out || passed="$passed $bytes"
done
is "$passed" "" "what a terminal acts on, a false line and what is not UTF-8 are found"
printf 'a \\x1b\t\303\244\n' >out
harmless out
ok $? "text with a tab, a letter beyond ASCII and an escaped byte is harmless"

# try COMMAND...: neither stream has anything that is not text. What it was given is counted where it was shown. A command
# that takes what it was given may go on until it is ended, as an agent does.
tried=0
shown=0
bad=
patience=60
try() {
	# --foreground: else a SIGCONT follows, and a program of the sanitizers that stops itself to look at its memory stays so.
	timeout --foreground "$patience" "$@" >out 2>err </dev/null
	rc=$?
	tried=$((tried + 1))
	! grep -q '2J' out err || shown=$((shown + 1))
	for stream in out err; do
		[ ! -s $stream ] || harmless $stream || bad="$bad
$(printf '%s ' "$@" | od -An -c | tr -d '\n'): std$stream"
	done
	{ [ $rc -lt 128 ] && { [ $rc != 124 ] || [ $patience = 1 ]; }; } || bad="$bad
$(printf '%s ' "$@" | tr -dc '\040-\176'): exit status $rc"
}
# clean TITLE LEAST: and what was tried did show what it was given, LEAST times or more.
clean() {
	is "$bad" "" "$1: text only"
	ok $((shown < $2)) "$1: what was given is shown, escaped ($shown of $tried)"
	tried=0
	shown=0
	bad=
}

segment=$SEGMENT.s
# restore: what the commands before may have changed.
restore() {
	shmlimit create "$segment" --slots 16 --store-keys 64 --if-missing
	shmlimit rule set "$segment" r --algorithm funnel --capacity 2 --rate 1/day --mode enforce
}
restore
printf '[r]\nrate = 1/s\n' >rules
printf '127.0.0.1 - - [21/Nov/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 5\n' >log

# operand WORD: what is right for an operand of this name.
operand() {
	case $1 in
	NAME) echo "$segment" ;;
	RULE) echo r ;;
	URL) echo redis://127.0.0.1:1 ;;
	FILE | FILE...) echo rules ;;
	COMMAND...) echo true ;;
	CAPACITY | COUNT | PERIOD | QUANTITY) echo 5 ;;
	*) echo key ;;
	esac
}

commands=$(shmlimit --help | sed -n 's/^  \([a-z ]*[a-z]\)\( .*\)\{0,1\}$/\1/p' | sed 's/   *.*//; s/ /_/g' | sort -u)
for c in $commands; do
	words=$(echo "$c" | tr _ ' ')
	[ "$c" = agent ] && patience=1 || patience=60
	restore 2>/dev/null
	shmlimit $words --help >help
	operands=$(sed -n "1s/^usage: shmlimit $words//p" help | tr -d '[]|')
	right=
	for operand in $operands; do
		case $operand in options | --* | DIR) continue ;; esac
		right="$right $(operand "$operand")"
	done
	# Each operand, with those before it as they should be.
	before=
	for operand in $right ''; do
		try shmlimit $words $before "$evil"
		try shmlimit $words $before "$operand$evil" $right
		before="$before $operand"
	done
	try shmlimit $words $right "--$evil"
	for option in $(sed -n 's/^  \(-., \)*\(--[a-z-]*\).*/\2/p' help); do
		for value in "$evil" "5$evil" "r=$evil" "203.0.113.9/$evil"; do
			try shmlimit $words $right "$option=$value"
		done
	done
done
clean "operands and options of each command" 800
patience=60
for url in "$evil" "redis://$evil" "redis://127.0.0.1:1$evil" "redis://127.0.0.1:1/$evil" "redis://u$evil:p$evil@127.0.0.1:1" \
	"redis://[::1$evil]:1" "unix://$evil" "unix:///none/$evil" "unix:///none?db=$evil" "rediss://127.0.0.1:1/?$evil" \
	"redis+sentinel://127.0.0.1:1/$evil" "redis+sentinel://127.0.0.1:1/a/$evil" "http://$evil"; do
	try shmlimit global ping "$segment" "$url"
	try shmlimit global take "$segment" "$url" r key
	try env SHMLIMIT_BACKEND="$url" shmlimit global take "$segment" - r key
	try shmlimit global reset "$segment" "$url" r
	try shmlimit agent "$segment" "$url" "--deadline=$evil"
done
clean "a backend's URL" 10

# Each key that a rules file can have, and a folder of them.
keys=$(for c in "create" "rule set"; do shmlimit $c --help; done | sed -n 's/^  --\([a-z-]*\) .*/\1/p' | sort -u)
for line in "[$evil" "[$evil]" "[r] $evil" "$evil" "$evil =" "$evil = 1" "= $evil" "rate $evil" \
	$(for key in $keys enabled; do echo "$key"; done); do
	case $line in
	[a-z]*) line="$line = 5$evil" ;;
	esac
	for section in '*' r; do
		printf '[%s]\n%s\n' "$section" "$line" >rules
		try shmlimit apply "$segment" rules
		try shmlimit apply "$SEGMENT.new" rules --dry-run
	done
done
mkdir dir
printf '[%s]\nrate = 1/s\n' "$evil" >"dir/x$evil.conf"
try shmlimit apply --all dir
try shmlimit apply --all "$evil"
clean "lines of a rules file" 40

# A log's fields, of text and of JSON, where replay takes them and where it refuses them.
json=$(printf '%s' "$evil" | iconv -f latin1 -t UTF-8 | sed 's/'"$(printf '\033')"'/\\u001b/; s/'"$(printf '\r')"'/\\r\\n/' | tr -d '\n')
{
	for n in 1 2 3 4; do
		printf '%s - %s [21/Nov/2026:09:00:00 +0000] "GET /%s HTTP/1.1" 200 5 "-" "-" "%s"\n' 127.0.0.1 "$evil" "$evil" "$evil"
		printf '203.0.113.9 - u%s [21/Nov/2026:09:00:00 +0000] "GET /%s HTTP/1.1" 200 5 "-" "-" "%s"\n' \
			"${evil%?FALSE}" "${evil%?FALSE}" "${evil%?FALSE}"
	done
} >log
for n in 1 2 3 4; do
	printf '{"time":"2026-11-21T09:00:00Z","remote_addr":"%s","remote_user":"%s","uri":"/%s","status":200,"plan":"%s"}\n' \
		"$json" "$json" "$json" "$json"
done >log.json
printf '%s\n' "$evil" >log.evil
printf '203.0.113.9 - - [%s] "GET / HTTP/1.1" 200 5\n' "${evil%?FALSE}" >log.time
printf '%s\n' "free$evil 1/s" "* 5$evil" >limits
for file in log log.json log.evil log.time "$evil"; do
	for key in addr user path addr+user+path; do
		try shmlimit replay --rule '1/s burst 1' --key $key "$file"
		try shmlimit replay --rule '1/s burst 1' --key $key --json "$file"
	done
	try shmlimit replay --limit-field user "$file"
	try shmlimit replay --limit-field plan "$file"
	try shmlimit replay --limit-field user --limits limits "$file"
	try shmlimit replay --client "$evil" --rule 1/s "$file"
	try shmlimit replay --rule 1/s --plot - "$file"
done
clean "fields of a log" 20

# Keys that are stored, and shown.
shmlimit destroy "$segment"
restore
shmlimit take "$segment" r "$evil" --cost 2 --quiet
shmlimit ban "$segment" --key-text "$evil" --for 1h >/dev/null
for json in '' --json; do
	for c in "inspect" "keys" "bans" "verify" "rule list" "rule show" "metrics" "check" "rule export" "stat"; do
		case $c in
		stat) try shmlimit stat "$segment" --count 1 --interval 10ms $json ;;
		"rule show") try shmlimit rule show "$segment" r $json ;;
		*) try shmlimit $c "$segment" $json ;;
		esac
	done
	try shmlimit list $json
done
try shmlimit bans "$segment" --nft
try shmlimit metrics --all
try shmlimit top "$segment" --interval 10ms --count 1
clean "what is stored" 4
done_testing
