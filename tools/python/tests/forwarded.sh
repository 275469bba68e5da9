#!/bin/sh
# forwarded: each front-end says once in a process that all clients behind a proxy are one, where a request has a field that
# proxies write and the key is the proxy's address; not where the proxy is configured, nor if it is turned off.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
. "$SOURCE/tests/server/server.inc"
need gunicorn curl

has() { for module; do python3 -c "import $module" 2>/dev/null || { ok 0 "$what # SKIP no $module"; return 1; }; done; }
listening() { grep -q 'Booting worker' "$TMP/log"; }
said() { grep -c 'behind a proxy all clients are one' "$TMP/log"; }
says() { [ "$(said)" -ge 1 ]; }

# try CLASS APP NUMBER TITLE [FIELD]: how often requests with the field, to $paths, are reported in one worker.
paths='/ / /'
try() {
	: >"$TMP/log"
	timeout 600 gunicorn --chdir "$TMP" --bind 127.0.0.1:0 --workers 1 --forwarded-allow-ips '' --worker-class "$1" "$2:app" 2>"$TMP/log" &
	server=$!
	servers="$servers $server"
	within listening || { diag "$(cat "$TMP/log")"; exit 1; }
	url=$(sed -n 's/.*Listening at: \(http:[^ ]*\).*/\1/p' "$TMP/log")
	before=$(codes "$url/") && before="$before $(said)"
	field=${5:-X-Forwarded-For: 203.0.113.9}
	for path in $paths; do before="$before $(codes -H "${field}1" "$url$path")"; done
	[ "$3" = 0 ] || within says
	kill -TERM $server
	wait $server
	is "$before: $(said)" "200 0 200 200 200: $3" "$what: $4"
	shmlimit destroy "$SEGMENT" 2>/dev/null
}
# advises TEXT
advises() { like "$(cat "$TMP/log")" "a request from 127.0.0.1 has a field X-Forwarded-For: .*[(]$1" "$what: it says what to write"; }

wsgi() {
	cat >"$TMP/$1.py" <<-END
		from shmlimit import Gate, Limit, wsgi
		def hello(environ, start_response):
		    start_response("200 OK", [])
		    return [b"hello"]
		app = wsgi.Middleware(wsgi.Middleware(hello, Gate("$SEGMENT", [Limit("a", $2, rate="60/day")]$3)), Gate("$SEGMENT", [Limit("b", $2, rate="60/day")]$3))
	END
}
what=WSGI
wsgi plain wsgi.client ''
try sync plain 1 "of two gates and three requests one is reported"
advises 'wsgi.client_behind[(][)] names proxies; if it is no proxy: proxy_warning=no[)]'
for field in 'Forwarded: for=203.0.113.9' 'X-Real-IP: 203.0.113.9' 'CF-Connecting-IP: 203.0.113.9'; do
	try sync plain 1 "${field%%:*} is such a field" "$field"
done
try sync plain 0 "an address that is in the field was put in the peer's place" 'X-Forwarded-For: 127.0.0.1, 10.0.0.'
wsgi own 'lambda environ: environ["REMOTE_ADDR"]' ''
try sync own 1 "a key of the application's own is reported, too"
wsgi login 'lambda environ: environ["REMOTE_ADDR"] if environ["PATH_INFO"] == "/login" else None' ''
paths='/ /login /'
try sync login 1 "a proxy whose address is the key of some requests only is reported, too"
paths='/ / /'
cat >"$TMP/looks.py" <<-'END'
	# usage: looks.py [NAME PROXY_WARNING FIELD REQUESTS]...: of each run of requests, how many are looked at and reported, as N/N
	import io, logging, os, sys
	from shmlimit import Gate, Limit, wsgi
	class Environ(dict):
	    def __contains__(self, name):
	        self["looked"] = True
	        return super().__contains__(name)
	uses, answers = {}, []
	arguments = iter(sys.argv[1:])
	for name, warning, field, requests in zip(*[arguments] * 4):
	    if name not in uses:
	        gate = Gate(os.environ["SEGMENT"], [Limit("client", wsgi.client, rate="1000000/s")], proxy_warning=warning)
	        uses[name] = wsgi.Middleware(lambda environ, start_response: [], gate)
	    log, looked = io.StringIO(), 0
	    handler = logging.StreamHandler(log)
	    logging.getLogger("shmlimit").addHandler(handler)
	    for _ in range(int(requests)):
	        environ = Environ(REMOTE_ADDR="127.0.0.1", REQUEST_METHOD="GET", **({"HTTP_X_FORWARDED_FOR": field} if field else {}))
	        uses[name](environ, lambda *given: None)
	        looked += environ.get("looked", False)
	    logging.getLogger("shmlimit").removeHandler(handler)
	    answers.append(f"{looked}/{log.getvalue().count('behind a proxy')}")
	print(*answers)
END
# looks COUNTS TITLE ARGUMENT...
looks() {
	counts=$1 title=$2
	shift 2
	is "$(SEGMENT=$SEGMENT python3 "$TMP/looks.py" "$@")" "$counts" "$what: $title"
	shmlimit destroy "$SEGMENT" 2>/dev/null
}
looks "1/1 0/0" "after the report no request is looked at" a yes 203.0.113.9 1 a yes 203.0.113.9 99
looks "1/1 1/0" "after the report of another middleware one more request is looked at" a yes 203.0.113.9 1 b yes 203.0.113.9 99
looks 0/0 "with proxy_warning=\"no\" no request is looked at" a no 203.0.113.9 99
looks "10100/0 1/1" "of requests without a field one in a hundred is looked at in the end" a yes '' 20000 a yes 203.0.113.9 100
wsgi user 'lambda environ: "user"' ''
try sync user 0 "a key that is not the address says nothing"
wsgi behind 'wsgi.client_behind("127.0.0.1")' ''
try sync behind 0 "a proxy that is named says nothing"
wsgi other 'wsgi.client_behind("192.0.2.10")' ''
try sync other 1 "a proxy that is not among those named is reported"
for no in False '"no"'; do
	wsgi quiet wsgi.client ", proxy_warning=$no"
	try sync quiet 0 "proxy_warning=$no says nothing"
done

is "$(python3 -c "from shmlimit.forwarded import Watch; Watch('', 'off')" 2>&1 | tail -n 1)" 'ValueError: proxy_warning "off": must be yes or no' \
	"another word than yes or no is refused"

asgi() {
	cat >"$TMP/$1.py" <<-END
		from shmlimit import Gate, Limit, asgi
		async def hello(scope, receive, send):
		    await send({"type": "http.response.start", "status": 200, "headers": []})
		    await send({"type": "http.response.body", "body": b"hello"})
		app = asgi.Middleware(hello, Gate("$SEGMENT", [Limit("a", $2, rate="60/day")]$3))
	END
}
uvicorn=uvicorn.workers.UvicornWorker
what=ASGI
if has uvicorn; then
	asgi plain asgi.client ''
	try $uvicorn plain 1 "it is reported once"
	advises "asgi.client_behind[(][)] or the server's own option"
	asgi behind 'asgi.client_behind("127.0.0.1")' ''
	try $uvicorn behind 0 "a proxy that is named says nothing"
	for no in False '"no"'; do
		asgi quiet asgi.client ", proxy_warning=$no"
		try $uvicorn quiet 0 "proxy_warning=$no says nothing"
	done
fi

fast() {
	cat >"$TMP/$1.py" <<-END
		from fastapi import Depends, FastAPI
		from shmlimit.fastapi import RateLimit
		app = FastAPI(dependencies=[Depends(RateLimit("60/day", segment="$SEGMENT"$2))])
		@app.get("/")
		async def hello():
		    return "hello"
	END
}
what=FastAPI
if has fastapi uvicorn; then
	fast plain ''
	try $uvicorn plain 1 "it is reported once"
	for no in False '"no"'; do
		fast quiet ", proxy_warning=$no"
		try $uvicorn quiet 0 "proxy_warning=$no says nothing"
	done
fi

flask() {
	cat >"$TMP/$1.py" <<-END
		import flask, flask_limiter, flask_limiter.util, shmlimit.limits
		from werkzeug.middleware.proxy_fix import ProxyFix
		app = flask.Flask(__name__)
		flask_limiter.Limiter(flask_limiter.util.get_remote_address, app=app, storage_uri="shmlimit://$SEGMENT$2",
		    strategy="$3", default_limits=["60/day"])
		$4
		@app.route("/")
		def hello():
		    return "hello"
	END
}
what=Flask-Limiter
if has flask_limiter; then
	for strategy in fixed-window moving-window funnel; do
		flask plain '' $strategy ''
		try sync plain 1 "$strategy: it is reported once"
	done
	advises "werkzeug's ProxyFix names proxies"
	flask behind '' fixed-window 'app.wsgi_app = ProxyFix(app.wsgi_app)'
	try sync behind 0 "ProxyFix says nothing"
	is "$(python3 -c "import limits, shmlimit.limits; limits.storage.storage_from_string('shmlimit://web?proxy_warning=off')" 2>&1 | tail -n 1)" \
		'limits.errors.ConfigurationError: shmlimit://web: proxy_warning "off": must be yes or no' "$what: another word than yes or no is refused"
	for no in no false; do
		flask quiet "?proxy_warning=$no" fixed-window ''
		try sync quiet 0 "proxy_warning=$no says nothing"
	done
fi

django() {
	cat >"$TMP/$1.py" <<-END
		import django.core.wsgi
		from django.conf import settings
		settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF="site_urls", SECRET_KEY="k", SHMLIMIT={"name": "$SEGMENT"$2},
		    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "rest_framework"], USE_TZ=True,
		    REST_FRAMEWORK={"DEFAULT_THROTTLE_CLASSES": ["shmlimit.drf.AnonRateThrottle"], "NUM_PROXIES": $3,
		        "DEFAULT_THROTTLE_RATES": {"anon": "60/day"}, "UNAUTHENTICATED_USER": None})
		app = django.core.wsgi.get_wsgi_application()
	END
}
cat >"$TMP/site_urls.py" <<END
import django.urls, rest_framework.decorators, rest_framework.response
@rest_framework.decorators.api_view(["GET"])
def view(request):
    return rest_framework.response.Response("hello")
urlpatterns = [django.urls.path("", view)]
END
what="Django REST framework"
if has rest_framework; then
	django plain '' 0
	try sync plain 1 "it is reported once"
	advises 'NUM_PROXIES of REST_FRAMEWORK says how many proxies there are'
	django behind '' 1
	try sync behind 0 "a proxy that is counted says nothing"
	for no in False '"no"'; do
		django quiet ", \"proxy_warning\": $no" 0
		try sync quiet 0 "proxy_warning: $no says nothing"
	done
fi
done_testing
