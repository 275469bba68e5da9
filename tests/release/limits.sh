# limits.sh: in a root with /bundles, Python, Ruby and Node, without a network and a compiler: install each, and limit.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

ip link set lo up
cd /root || exit
is "$(command -v cc gcc clang c99)" "" "there is no compiler"
redis-server --port 6399 --save '' --daemonize yes >&2
until [ "$(redis-cli -p 6399 ping 2>/dev/null)" = PONG ]; do sleep 0.1; done
here='segment=SEGMENT create=yes rule=client rate=2/h'
hosts="segment=SEGMENT create=yes backend=redis://127.0.0.1:6399 rule=client rate=2/h"

python3 -m pip install --quiet --no-index --break-system-packages --root-user-action=ignore /bundles/*.whl >&2 ||
	python3 -m pip install --quiet --no-index --root-user-action=ignore /bundles/*.whl >&2
is $? 0 "pip installs the wheel"
is "$(python3 -c 'import shmlimit
from shmlimit import Gate, Limit
import shmlimit._native
gate = Gate("python", [Limit("client", lambda request: request, rate="2/h")])
print([gate.ask("203.0.113.9").status for _ in range(3)])
print("libshmlimit-global" in open("/proc/self/maps").read())
gate = Gate("python2", [Limit("client", lambda request: request, rate="2/h")], backend="redis://127.0.0.1:6399")
print([gate.ask("203.0.113.9").status for _ in range(3)])
print("/shmlimit/lib/libshmlimit-global" in open("/proc/self/maps").read())' 2>&1)" "['passed', 'passed', 'rejected']
False
['passed', 'passed', 'rejected']
True" "Python limits, and loads what asks Redis for backend= only"

if ruby -e 'exit RUBY_VERSION.start_with?(ARGV[0])' "$(cat /bundles/ruby)"; then
	gem install --local --no-document /bundles/*-linux.gem >&2
	is $? 0 "gem installs the gem"
	ask='require "shmlimit"; gate = Shmlimit::Gate.new(ARGV[0]); p Array.new(3) { gate.allow?("203.0.113.10") }'
	is "$(ruby -W0 -e "$ask" "$(echo "$here" | sed s/SEGMENT/ruby/)" 2>&1)" "[true, true, false]" "Ruby limits"
	is "$(ruby -W0 -e "$ask" "$(echo "$hosts" | sed s/SEGMENT/ruby2/)" 2>&1)" "[true, true, false]" "Ruby limits for many hosts"
else
	gem install --local --no-document /bundles/*-linux.gem >&2
	is $? 1 "gem refuses a gem that was built for another Ruby"
fi

npm install --silent --offline --no-audit /bundles/*.tgz >&2
is $? 0 "npm installs the package"
is "$(node -e 'const { ShmlimitStore } = require("shmlimit/express-rate-limit")
const store = new ShmlimitStore({ segment: "node" })
store.init({ windowMs: 60000 })
console.log([1, 2, 3].map(() => store.increment("203.0.113.9").totalHits).join())
console.log(process.report.getReport().sharedObjects.some((name) => /libshmlimit-global/.test(name)))' 2>&1)" "1,2,3
false" "Node limits, and has not loaded what asks Redis"
redis-cli -p 6399 shutdown nosave >&2 2>&1
