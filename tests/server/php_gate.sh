#!/bin/sh
# php_gate: the laws of the class Gate.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/php.inc"

TMP=$TMP php "$SOURCE/tests/server/php_gate.php"
