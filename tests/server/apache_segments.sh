#!/bin/sh
# apache_segments: virtual hosts with segments of their own, beside one that has the server's.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/apache.inc"

need apache2 curl jq perl pgrep setsid setpriv
need_module "$apache_module" apache2-dev

# configure_apache SED...: with changes.
configure_apache() {
	{
		cat <<-END
			$(apache_begin event headers)
			Listen 127.0.0.1:$port
			DocumentRoot $TMP/html
			ShmlimitRule inherited all rate=2/day
			<VirtualHost 127.0.0.1:$port>
			    ServerName first.test
			    ShmlimitRule page all rate=3/day
			    Header always set X-Used 7
			    <Location "/used">
			        ShmlimitRule used all "rate=1/day burst 100" charge=%{resp:X-Used}
			    </Location>
			</VirtualHost>
			<VirtualHost 127.0.0.1:$port>
			    ServerName shop.test
			    ShmlimitRule other all rate=900/day
			    ShmlimitRule page all rate=3/day
			    ShmlimitRule places all "rate=2 at once for 1h"
			    ShmlimitSegment $SEGMENT.shop create=yes
			    Header always set X-Used 30
			    <Location "/used">
			        ShmlimitRule used all "rate=1/day burst 100" charge=%{resp:X-Used}
			    </Location>
			</VirtualHost>
			<VirtualHost 127.0.0.1:$port>
			    ServerName secure.test
			    ShmlimitSegment $SEGMENT.shop create=yes
			    ShmlimitRule page all rate=3/day
			</VirtualHost>
			<VirtualHost 127.0.0.1:$port>
			    ServerName plain.test
			    ShmlimitSegment $SEGMENT.plain create=yes
			</VirtualHost>
			<VirtualHost 127.0.0.1:$port>
			    ServerName none.test
			</VirtualHost>
			<VirtualHost 127.0.0.1:$port>
			    ServerName missing.test
			    ShmlimitSegment $SEGMENT.missing
			    ShmlimitRule page all
			</VirtualHost>
			ShmlimitSegment $SEGMENT create=yes
		END
	} | sed "$@" >"$TMP/apache.conf"
}

# asks HOST PATH N: the statuses of N requests, in one line.
asks() { codes -H "Host: $1" "$url/$2?[1-$3]" | tr '\n' ' '; }
rules() { shmlimit rule list "$1" --json | jq -r '[.[].name] | sort | join(" ")'; }
left_in() { shmlimit peek "$1" "$2" all | sed -n 's/^remaining: //p'; }
charged() { [ "$(left_in "$SEGMENT" used) $(left_in "$SEGMENT.shop" used)" = "$1" ]; }

# The test reads them, too, so they are root's.
for name in "$SEGMENT" "$SEGMENT.shop" "$SEGMENT.plain"; do
	# shellcheck disable=SC2046 # two words each
	shmlimit create "$name" --slots 1024 $([ "$(id -u)" -ne 0 ] || echo --mode 660 --group www-data)
done
start apache -e ''
shmlimit reset "$SEGMENT" --all >/dev/null
is "$(asks first.test index.html 4)" "200 200 200 429 " "a virtual host without a segment of its own has the server's"
is "$(asks shop.test index.html 2)$(asks secure.test index.html 2)" "200 200 200 429 " \
	"virtual hosts that name one segment share its limits, and no others"
is "$(asks plain.test index.html 1)$(asks none.test index.html 2)" "200 200 429 " "limits that virtual hosts inherit are in the server's segment"
is "$(asks missing.test index.html 1)$(asks shop.test absent 1)" "503 429 " "a segment that is missing concerns only the virtual host that names it"
is "$(rules "$SEGMENT") / $(rules "$SEGMENT.shop") / $(rules "$SEGMENT.plain")" "inherited page used / other page places used / " \
	"each segment has the rules of its virtual hosts"
is "$(left_in "$SEGMENT.shop" other)" 898 "a request takes from the limits of its virtual host, by their order"
is "$(left_in "$SEGMENT.shop" places)" 2 "places are left in the segment in which they were entered"
is "$(asks first.test used 1)$(asks shop.test used 1)" "404 404 " "requests are let pass whose cost is known afterwards"
within charged "93 70"
ok $? "what a request used is charged in the segment of its virtual host"
is "$(said "segment $SEGMENT.missing: no such segment")" "$(workers | wc -l)" "each child says which segment is missing"
stop
is "$rc$left" 0 "the server ends"

# wrong WHAT REGEX SED: httpd refuses the configuration that sed makes, and says what is wrong.
wrong() {
	configure_apache -e "$3"
	run check_apache
	like "$rc $(echo "$err" | tr '\n' ' ')" "^1 .*$2" "$1 is refused"
}
line_of() { grep -n "$1" "$TMP/apache.conf" | cut -d : -f 1 | sed -n "$2p"; }
wrong "a second segment of a virtual host" 'one is set already' "s/ShmlimitSegment $SEGMENT.plain.*/&\n&/"
wrong "a segment with other options in another place" '.shop. has other options in another place' '/secure.test/,/<\/Virtual/s/create=yes/create=yes slots=64/'
wrong "a segment of a section" 'ShmlimitSegment' "s/ShmlimitRule used.*/ShmlimitSegment $SEGMENT.used/"
wrong "a limit of the server without a segment" 'ShmlimitRule needs a ShmlimitSegment' "s/^ShmlimitSegment .*//"
configure_apache -e '/secure.test/,/<\/Virtual/s/rate=3/rate=4/'
run check_apache
like "$rc $err" "^1 .*line $(line_of 'page all' 3) of" "a rule with two rates in one segment is refused, with the line of the second"
configure_apache -e '/secure.test/,/<\/Virtual/s/Rule page.*/Rule gone all/'
run check_apache
like "$rc $err" "^0 .*rule gone: no such rule.*line $(line_of 'gone all' 1) of" "a rule that a virtual host's segment lacks is reported with its line"
for segment in "$SEGMENT" "$SEGMENT.shop" "$SEGMENT.plain"; do
	shmlimit destroy "$segment"
done
done_testing
