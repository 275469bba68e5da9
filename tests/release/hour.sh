# hour.sh: in a root where the packages of /first are installed, without a network: limit, look, upgrade to /second, purge.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

# codes N URL: how many answers of each status N requests get.
codes() { seq "$1" | xargs -P 4 -n 25 sh -c 'for i; do curl -so /dev/null -w "%{http_code}\n" "$0"; done' "$2" | sort | uniq -c | awk '{ print $2 "x" $1 }' | tr '\n' ' '; }
# within COMMAND...: until it succeeds, for 20 s at most.
within() {
	for i in $(seq 200); do
		"$@" && return
		sleep 0.1
	done
	return 1
}

ip link set lo up
cd /root || exit
is "$(command -v shmlimit)" /usr/bin/shmlimit "the command is installed"
first=$(dpkg-query -W -f '${Version}' shmlimit)

# nginx
rm -f /etc/nginx/sites-enabled/default
cat >/etc/nginx/conf.d/limited.conf <<'END'
shmlimit_segment site create=yes;
server {
	listen 127.0.0.1:8080;
	root /var/www/html;
	shmlimit $remote_addr rule=all rate=100000/s;
	location /limited { shmlimit $remote_addr rule=few rate=5/h; try_files /index.nginx-debian.html =404; }
	location / { try_files /index.nginx-debian.html =404; }
}
END
/usr/sbin/nginx
is "$(codes 40 http://127.0.0.1:8080/limited)" '200x5 429x35 ' "nginx allows the limit"

# Flask
cat >app.py <<'END'
import flask, flask_limiter, flask_limiter.util, shmlimit.limits

app = flask.Flask(__name__)
limiter = flask_limiter.Limiter(flask_limiter.util.get_remote_address, app=app, storage_uri="shmlimit://web")

@app.get("/")
@limiter.limit("100/day")
def index():
    return "hello\n"

@app.get("/free")
@limiter.limit("1000000/day")
def free():
    return "hello\n"
END
gunicorn -w 4 -b 127.0.0.1:8081 --pid /root/pid app:app >gunicorn.log 2>&1 &
within curl -so /dev/null http://127.0.0.1:8081/free || tail -n 20 gunicorn.log >&2
is "$(codes 400 http://127.0.0.1:8081/)" '200x100 429x300 ' "four workers of Flask allow the limit, together"

is "$(shmlimit --owner www-data top site --json --count 1 | grep -o '"denied": *35' | head -n 1 | tr -d ' ')" '"denied":35' "top shows the denials"

# The upgrade, under requests.
load() {
	while [ -e loading ]; do
		curl -so /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/ http://127.0.0.1:8081/free 2>/dev/null | grep -o '[0-9]*$'
	done
}
: >loading
load >answers &
dpkg -i /second/build/deb/*.deb >&2
is "$? $(dpkg --compare-versions "$(dpkg-query -W -f '${Version}' shmlimit)" gt "$first" && echo later)" '0 later' "the next build is an upgrade"
# A reload goes on with the library that the master has loaded; a new binary loads the new one.
nginx -s reload
kill -HUP "$(cat pid)"
sleep 1
is "$(codes 40 http://127.0.0.1:8080/limited)" '429x40 ' "nginx goes on with its limit when it is reloaded"
kill -USR2 "$(cat /run/nginx.pid)"
within test -s /run/nginx.pid.oldbin
within test -s /run/nginx.pid
kill -QUIT "$(cat /run/nginx.pid.oldbin)"
within test ! -e /run/nginx.pid.oldbin
layouts() { ls /dev/shm | sed -n 's/^shmlimit\.\([0-9]*\)\.\(site\|web\)$/\1 \2/p' | sort -n | tr '\n' ' '; }
two() { [ "$(layouts | wc -w)" -eq 8 ]; }
within two
is "$(layouts | wc -w)" 8 "the new processes have segments of the new layout: $(layouts)"
sleep 1
rm loading
wait %2 2>/dev/null
sleep 0.5
is "$(sort answers | uniq -c | awk '{ print $2 }' | tr '\n' ' ')" '200 ' "each of $(wc -l <answers) requests during the upgrade is served"
is "$(codes 40 http://127.0.0.1:8080/limited)" '200x5 429x35 ' "after the upgrade of its binary nginx limits in the new segment"

# Gone.
nginx -s quit
kill "$(cat pid)"
rm -f /etc/nginx/conf.d/limited.conf
# shellcheck disable=SC2046
dpkg -P $(dpkg-query -W -f '${Package} ${Status}\n' '*shmlimit*' | sed -n 's/ install ok installed//p') >purged 2>&1
is $? 0 "the packages are purged"
is "$(grep -c "^shmlimit: /dev/shm/.* is the site's and stays" purged)" 4 "purge names the segments that stay"
is "$(find / -xdev \( -path /first -o -path /second -o -path /proc -o -path /sys \) -prune -o -name '*shmlimit*' ! -path '*/disabled_by_maint/*' -print)" \
	"" "nothing else of it is left"
