#!/bin/sh
# celery: workers of Celery, each with two processes, begin a task at one rate together, also as one of them is killed.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
need ps timeout
python3 -c 'import celery' 2>/dev/null || skip_all "no python3-celery"

# Each worker has a folder as its broker: two workers of kombu's would take messages from one another, and end.
mkdir "$TMP/one" "$TMP/two" && cd "$TMP" || exit
export TMPDIR="$TMP"
cat >tasks.py <<END
import os, time
from celery import Celery

app = Celery("tasks", broker="filesystem://")
app.conf.update(
    worker_consumer="shmlimit.celery:Consumer", shmlimit_segment="$SEGMENT", task_ignore_result=True, worker_prefetch_multiplier=5,
    broker_transport_options={"data_folder_in": os.environ["BROKER"], "data_folder_out": os.environ["BROKER"]},
)

@app.task(rate_limit="20/s")
def paced(n):
    with open("begun", "a") as file:
        file.write(f"{time.monotonic():.4f} {os.getppid()} {n}\n")
END
worker() {
	BROKER=$1 timeout 120 python3 -m celery --quiet -A tasks worker --concurrency 2 --hostname "$1@localhost" --without-gossip --without-mingle \
		--without-heartbeat >"$1.log" 2>&1 &
	workers="$workers $!"
}
end() { for worker in $workers; do kill -KILL $(ps -o pid= --ppid "$worker") "$worker"; done 2>/dev/null; }
# send WORKER FROM TO
send() { BROKER=$1 python3 -c "import tasks; [tasks.paced.delay(n) for n in range($2, $3)]"; }
# begun N: this number of tasks have.
begun() { [ "$(wc -l <begun)" -ge "$1" ]; }
parents() { cut -d ' ' -f 2 begun | sort -u; }
both() { [ "$(parents | wc -l)" -eq 2 ]; }
within() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || return 1
		sleep 0.1
	done
}
trap 'end; wait; shmlimit destroy "$SEGMENT" 2>/dev/null; tap_clean' EXIT
workers=
: >begun
begun=$(python3 -c 'import time; print(time.monotonic())')
send one 0 60
send two 60 120
worker one
worker two
within begun 10
ok $? "workers begin a task that has a limit"
within both
ok $? "two workers begin it"
like "$(shmlimit rule show "$SEGMENT" celery.tasks.paced 2>&1)" '20' "the limit is a rule of the segment"
killed=$(parents | head -n 1)
kill -KILL "$killed"
at=$(wc -l <begun)
within begun $((at + 10))
ok $? "when one worker was killed the other one goes on"
# early FILE: the calls that began earlier than a rate of 20/s lets them.
early() { sort -n "$1" | awk -v begun="$begun" '$1 < begun + (NR - 1) / 20 { print NR }'; }
is "$(early begun)" "" "no task begins before its turn"
block tools/python/README.md python shared_task | sed "s/rule=/segment=\"$SEGMENT\", &/; s,100/hour,1/hour," >mails.py
is "$(BROKER=one python3 -c 'import mails, tasks
tasks.app.conf.task_always_eager = True
mails.mail.apply(["user:42"])' 2>/dev/null)" "mail to user:42" "README.md: a task has a customer's limit"
done_testing
