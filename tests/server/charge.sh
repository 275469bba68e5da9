#!/bin/sh
# charge: nginx and Apache charge requests for what they turned out to cost, by a header field of the response: the sum is what the
# log says, with clients that go away, and workers that are killed.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

need curl jq python3 pgrep setpriv
REQUESTS=${REQUESTS:-2000}
KILLS=${KILLS:-3}
ESTIMATE=10
CAPACITY=${CAPACITY:-1000000}
limit="${RATE:-1}/hour burst $CAPACITY"

# load N: N requests of some tokens; each 100th client goes away at once.
load() { python3 "$SOURCE/tests/server/load.py" "$port" "$1" used; }
spent() { echo $((CAPACITY - $(remaining used all))); }
# What the log says that requests cost; of those without a number the estimate.
logged() { awk -v estimate=$ESTIMATE '$2 != 429 { n += $1 ~ /^[0-9]+$/ ? $1 : estimate } END { printf "%d\n", n }' "$TMP/$host.used"; }
same() { [ "$(spent)" = "$(logged)" ]; }
# What a killed worker had in its hands is not logged, and has paid its estimate. One of its requests may be logged and not charged, or the other
# way round: by no more than the largest number of tokens in load.py.
near() {
	lost=$(($(spent) - $(logged)))
	[ $lost -ge $((-500 * KILLS)) ] && [ $lost -le $(((ESTIMATE * 16 + 500) * KILLS)) ]
}

charges() {
	load $((REQUESTS / 2))
	within same
	ok $? "$what: the sum of what was charged is what responses cost, to the token"
	load $((REQUESTS / 2)) &
	busy=$!
	for _ in $(seq "$KILLS"); do
		kill -KILL "$(workers | head -n 1)"
		sleep 0.2
		within four
	done
	wait $busy
	within near
	ok $? "$what: of killed workers' requests the estimates stay"
	before=$(spent)
	is "$(for n in many -5 5- 1e3 18446744073709551616 18446744073709551614,3; do codes "$url/used?tokens=$n"; done | sort | uniq -c | tr -s ' ')" " 6 200" \
		"$what: responses with no number of tokens are served"
	within eval '[ $(($(spent) - before)) -eq $((6 * ESTIMATE)) ]'
	ok $? "$what: their estimates stay, also where a number is negative, or a sum is too large"
	within eval '[ "$(said "charge=.*[tT]okens.*: \"[^\"]*\" is no number of tokens: the estimate stays")" -ge 1 ]'
	ok $? "$what: the log has the field and its value"
	ok "$([ "$(said "is no number of tokens")" -le 4 ] && echo 0 || echo 1)" "$what: each worker logs that once"

	# Debt: one request uses more than there is.
	is "$(for n in 3 900 0; do codes "$url/debt?tokens=$n"; done | tr '\n' ' ')" "200 200 429 " \
		"$what: a client that used too much is refused until that is paid"
	is "$(for n in 1000000000000 0; do codes "$url/bounded?tokens=$n"; done | tr '\n' ' ')" "200 429 " "$what: a wrong amount is charged"
	wait=$(curl -s -o "$TMP/body" -D - "$url/bounded?tokens=0" | tr -d '\r' | sed -n 's/^Retry-After: //p')
	ok "$([ "$wait" -gt 590 ] && [ "$wait" -le 602 ] && echo 0 || echo 1)" "$what: it refuses the client for charge_max= (${wait} s)"
	is "$(for n in 0.0101 0.3,-:0.4 0.289 0 0; do codes "$url/scaled?tokens=$n"; done | tr '\n' ' ')" "200 200 200 429 429 " \
		"$what: with charge_scale=1000 seconds are milliseconds, rounded up, and several are added"
	is "$(shmlimit peek "$SEGMENT" scaled all --json | jq '.remaining, .allowed' | tr '\n' ' ')" "0 false " "$what: parts of a token are charged as one"
	is "$(codes -H 'X-Api-Key: k' "$url/v1/?tokens=5") $(shmlimit rule list "$SEGMENT" --json | jq '[.[].name] | index("tokens") != null')" \
		"200 true" "$what: README's limits serve"
	stop
	shmlimit destroy "$SEGMENT"
}

configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin 4)
		    log_format used '\$upstream_http_x_tokens \$status';
		    access_log off;
		    shmlimit_segment $SEGMENT create=yes;
		    server {
		        listen unix:$TMP/upstream.sock;
		        location / { add_header X-Tokens \$arg_tokens; return 200 used; }
		    }
		    server {
		        listen 127.0.0.1:$port;
		        location /used {
		            access_log $TMP/nginx.used used;
		            shmlimit all rule=used "rate=$limit" estimate=$ESTIMATE charge=\$upstream_http_x_tokens;
		            proxy_pass http://unix:$TMP/upstream.sock;
		        }
		        location /debt {
		            shmlimit all rule=debt "rate=1/day burst 100" charge=\$upstream_http_x_tokens;
		            proxy_pass http://unix:$TMP/upstream.sock;
		        }
		        location /bounded {
		            shmlimit all rule=bounded "rate=1/s" charge=\$upstream_http_x_tokens charge_max=10m;
		            proxy_pass http://unix:$TMP/upstream.sock;
		        }
		        location /scaled {
		            shmlimit all rule=scaled "rate=1/day burst 1000" charge=\$upstream_http_x_tokens charge_scale=1000;
		            proxy_pass http://unix:$TMP/upstream.sock;
		        }
		        $(block tools/nginx/README.md nginx charge= | sed "s|http://127.0.0.1:8090|http://unix:$TMP/upstream.sock|")
		    }
		}
	END
}
configure_apache() {
	cat >"$TMP/apache.conf" <<-END
		$(apache_begin prefork dir headers)
		$(apache_workers 4)
		KeepAliveTimeout 50ms
		LogFormat "%{X-Tokens}o %>s" used
		CustomLog $TMP/apache.used used env=used
		Listen 127.0.0.1:$port
		DocumentRoot $TMP/html
		FallbackResource /index.html
		ShmlimitSegment $SEGMENT create=yes
		Header always set X-Tokens "expr=%{reqenv:TOKENS}" env=TOKENS
		LoadModule setenvif_module $apache_modules/mod_setenvif.so
		SetEnvIf Request_URI ^/used used
		SetEnvIfExpr "%{QUERY_STRING} =~ /tokens=(.*)/" TOKENS=\$1
		<Location /used>
		    ShmlimitRule used all "rate=$limit" estimate=$ESTIMATE charge=%{resp:X-Tokens}
		</Location>
		<Location /debt>
		    ShmlimitRule debt all "rate=1/day burst 100" charge=%{resp:X-Tokens}
		</Location>
		<Location /bounded>
		    ShmlimitRule bounded all "rate=1/s" charge=%{resp:X-Tokens} charge_max=10m
		</Location>
		<Location /scaled>
		    ShmlimitRule scaled all "rate=1/day burst 1000" charge=%{resp:X-Tokens} charge_scale=1000
		</Location>
		$(block tools/apache/README.md apache charge=)
	END
}

mkdir -p "$TMP/html"
for what in nginx apache; do
	eval "module=\$${what}_module"
	command -v $what >/dev/null || command -v ${what}2 >/dev/null || module=
	if [ ! -f "$module" ]; then
		ok 0 "$what: what requests used is charged # SKIP $what, or its module, is missing"
		continue
	fi
	make_segment
	start $what
	charges
done
done_testing
