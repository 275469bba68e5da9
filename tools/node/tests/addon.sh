#!/bin/sh
# addon: what the classes for Node answer, in the main thread and in worker threads; and what they throw.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"

FLOAT_RATES=$SOURCE/tests/float_rates.txt
export FLOAT_RATES
for text in "new Limiter('web')" "require('express')" rule=plans rule=tokens; do
	block tools/node/README.md js "$text" >"$TMP/$text.js"
done
block lib/gate/shmlimit_gate.3.in mdoc 'segment=web fail=open' | sed "s/www-data/$(id -gn)/" >"$TMP/spec"
laws addon.cjs
