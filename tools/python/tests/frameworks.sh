#!/bin/sh
# frameworks: Flask-Limiter, Django REST framework, django-axes and FastAPI, each with four workers under gunicorn. The
# adapters create segment and rules.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
. "$SOURCE/tests/server/server.inc"
need gunicorn curl jq

has() { python3 -c "import $1" 2>/dev/null || { ok 0 "$what # SKIP no $1"; return 1; }; }
workers() { sed -n 's/.*Booting worker with pid: //p' "$TMP/log"; }
booted() { [ "$(workers | wc -l)" -ge "$1" ]; }
listening() { grep -q 'Listening at' "$TMP/log" && booted 4; }
# start APP CLASS: sets $server and $url.
start() {
	: >"$TMP/log"
	timeout 600 gunicorn --chdir "$TMP" --bind 127.0.0.1:0 --workers 4 --timeout 120 --worker-class "$2" "$1:app" 2>"$TMP/log" &
	server=$!
	servers="$servers $server"
	within listening || { diag "$(cat "$TMP/log")"; exit 1; }
	url=$(sed -n 's/.*Listening at: \(http:[^ ]*\).*/\1/p' "$TMP/log")
}
ends() {
	kill -TERM "$server"
	wait "$server"
	shmlimit destroy "$SEGMENT" 2>/dev/null
}
begun() { [ "$(allowed)" -gt $((before + 20)) ]; }

# exactly APP CLASS: 60 requests a day are allowed. A worker is killed under load.
exactly() {
	start "$1" "$2"
	crowd "$url/?[1-100]" >"$TMP/codes"
	is "$(count 200) $(count 429)" "60 40" "$what: four workers admit exactly the limit"
	like "$(get -o "$TMP/body" -D - "$url/" | tr -d '\r' | sed -n 's/^retry-after: //Ip')" '^[0-9]+$' \
		"$what: a refused client hears when to retry"

	shmlimit reset "$SEGMENT" --all >/dev/null
	before=$(allowed)
	crowd "$url/?[1-400]" >"$TMP/codes" &
	load=$!
	within begun
	kill -KILL "$(workers | head -n 1)"
	wait $load
	[ "$(count 200)" -le 60 ] && [ "$(count 200)" -ge $((60 - connections)) ]
	ok $? "$what: while a worker is killed they admit the limit, less what that one had in hand ($(count 200))"
	within booted 5
	crowd "$url/?[1-20]" >"$TMP/codes"
	is "$(count 429)" 20 "$what: the worker that replaces the killed one admits nothing beyond the limit"
	ends
}

flask() {
	cat <<-END
	import flask, flask_limiter, flask_limiter.util, shmlimit.limits
	app = flask.Flask(__name__)
	limiter = flask_limiter.Limiter(flask_limiter.util.get_remote_address, app=app, storage_uri="$1", strategy="$2",
	    default_limits=["60/day"], headers_enabled=True)
	@app.route("/")
	def hello():
	    return "hello"
	END
}
# uWSGI loads the application in the master, and forks.
uwsgi_listening() { grep -q 'spawned uWSGI worker 4' "$TMP/log" && [ "$(codes "$url/absent")" = 404 ]; }
respawned() { grep -q 'Respawned uWSGI worker' "$TMP/log"; }
uwsgi_exactly() {
	what="Flask-Limiter under uWSGI"
	command -v uwsgi >/dev/null || { ok 0 "$what # SKIP no uwsgi"; return; }
	: >"$TMP/log"
	timeout 600 uwsgi --plugin python3 --http-socket 127.0.0.1:0 --master --die-on-term --processes 4 --disable-logging \
		--chdir "$TMP" --module fixed:app >"$TMP/log" 2>&1 &
	server=$!
	servers="$servers $server"
	within grep -q 'port auto-assigned' "$TMP/log"
	url=http://127.0.0.1:$(sed -n 's/.*TCP address 127.0.0.1:\([0-9]*\) (port auto-assigned).*/\1/p' "$TMP/log")
	within uwsgi_listening || { diag "$(cat "$TMP/log")"; exit 1; }
	crowd "$url/?[1-30]" >"$TMP/codes"
	kill -KILL "$(sed -n 's/spawned uWSGI worker 1 (pid: \([0-9]*\).*/\1/p' "$TMP/log")"
	within respawned
	ok $? "$what: a worker that is killed is replaced"
	crowd "$url/?[1-70]" >>"$TMP/codes"
	is "$(count 200) $(count 429)" "60 40" "$what: four workers and the successor of one admit exactly the limit"
	ends
}
what="Flask-Limiter, fixed window"
if has flask_limiter; then
	flask "shmlimit://$SEGMENT" fixed-window >"$TMP/fixed.py"
	exactly fixed sync
	uwsgi_exactly
	what="Flask-Limiter, funnel"
	flask "shmlimit://$SEGMENT" funnel >"$TMP/funnel.py"
	start funnel sync
	crowd "$url/?[1-100]" >"$TMP/codes"
	is "$(count 200) $(count 429)" "60 40" "$what: four workers admit exactly the limit"
	ends
	what="Flask-Limiter, memory://"
	flask memory:// fixed-window >"$TMP/memory.py"
	start memory sync
	: >"$TMP/codes"
	beyond() {
		crowd "$url/?[1-100]" >>"$TMP/codes"
		[ "$(count 200)" -gt 60 ]
	}
	within beyond
	ok $? "$what: each worker has the limit for itself, so that together they admit more"
	ends
fi

cat >"$TMP/site.py" <<END
import django.contrib.auth, django.core.wsgi, django.http, django.urls
from django.conf import settings
settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF="site_urls", SECRET_KEY="k", SHMLIMIT={"name": "$SEGMENT", "slots": 64},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"] + (["axes"] if AXES else ["rest_framework"]),
    MIDDLEWARE=["axes.middleware.AxesMiddleware"] if AXES else [],
    CACHES={"default": {"BACKEND": "shmlimit.django_cache.CounterCache", "LOCATION": "$SEGMENT", "OPTIONS": {"slots": 64}}},
    AUTHENTICATION_BACKENDS=(["axes.backends.AxesBackend"] if AXES else []) + ["site_urls.Nobody"],
    AXES_HANDLER="axes.handlers.cache.AxesCacheHandler", AXES_FAILURE_LIMIT=5, AXES_COOLOFF_TIME=24, USE_TZ=True,
    REST_FRAMEWORK={"DEFAULT_THROTTLE_CLASSES": ["shmlimit.drf.AnonRateThrottle"], "DEFAULT_THROTTLE_RATES": {"anon": "60/day"},
        "UNAUTHENTICATED_USER": None})
app = django.core.wsgi.get_wsgi_application()
END
{
	echo "AXES = False"
	cat "$TMP/site.py"
} >"$TMP/drf.py"
{
	echo "AXES = True"
	cat "$TMP/site.py"
} >"$TMP/axes_app.py"
cat >"$TMP/site_urls.py" <<END
import django.contrib.auth, django.http, django.urls
from django.conf import settings
class Nobody:
    def authenticate(self, request, **credentials):
        return None
if "axes" in settings.INSTALLED_APPS:
    def view(request):
        user = django.contrib.auth.authenticate(request, username="laoqian", password="wrong")
        return django.http.HttpResponse("wrong", status=401)
else:
    import rest_framework.response, rest_framework.decorators, shmlimit.drf
    class Throttle(shmlimit.drf.AnonRateThrottle):
        def request_rate(self, request, view):
            return request.headers.get("X-Rate")
    @rest_framework.decorators.api_view(["GET"])
    @rest_framework.decorators.throttle_classes([Throttle])
    def view(request):
        return rest_framework.response.Response("hello")
urlpatterns = [django.urls.path("", view)]
END
what="Django REST framework"
if has rest_framework; then
	exactly drf sync
	start drf sync
	crowd "$url/?[1-40]" -H "$(from 10.0.0.1)" -H 'X-Rate: 7/day' >"$TMP/codes"
	is "$(count 200) $(count 429)" "7 33" "$what: a throttle whose requests have rates of their own is exact, too"
	ends
fi
what="django-axes"
if has axes; then
	start axes_app sync
	is "$(tally "$url/?[1-12]")" "4 times 401, 8 times 403" "$what: a client is locked out by failures that four workers have seen"
	ends
fi

cat >"$TMP/fast.py" <<END
from fastapi import Depends, FastAPI
from shmlimit.fastapi import RateLimit
app = FastAPI(dependencies=[Depends(RateLimit("60/day", segment="$SEGMENT", slots=64))])
@app.get("/")
async def hello():
    return "hello"
plans = RateLimit(lambda request: request.headers.get("x-rate"), rate_error="2/day", segment="$SEGMENT", slots=64)
@app.get("/plans", dependencies=[Depends(plans)])
async def hello_customer():
    return "hello"
END
what="FastAPI"
if has fastapi && has uvicorn; then
	exactly fast uvicorn.workers.UvicornWorker
	start fast uvicorn.workers.UvicornWorker
	crowd "$url/plans?[1-40]" -H 'X-Rate: 7/day' >"$TMP/codes"
	is "$(count 200) $(count 429)" "7 33" "$what: a rate that is a function of the request is exact, too"
	shmlimit reset "$SEGMENT" --all >/dev/null
	is "$(tally "$url/plans?[1-3]")" "2 times 200, 1 times 429" "$what: a request without a rate has that of rate_error"
	ends
fi
done_testing
