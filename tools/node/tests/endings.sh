#!/bin/sh
# endings: in servers of node:cluster the place of a request is left when it ends, however that is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/endings.inc"

need curl perl pgrep python3 setpriv

# Each path is one of endings.py. As Express does it, an exception is answered with 500, or ends the response that streams.
cat >"$TMP/app.cjs" <<'END_OF_APP'
const cluster = require('node:cluster')
const crypto = require('node:crypto')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const { once } = require('node:events')
const { setTimeout } = require('node:timers/promises')
const { limit } = require(`${process.env.SHMLIMIT}/middleware.js`)
const { SEGMENT, PORT, TMP, ENDINGS_GO, ENDINGS_WORK, RECYCLE } = process.env

// Workers that end are replaced, and on SIGHUP each ends when there is another one.
if (cluster.isPrimary) {
  for (let i = 0; i < 4; i++) cluster.fork()
  cluster.on('exit', () => { if (Object.keys(cluster.workers).length < 4) cluster.fork() })
  process.on('SIGHUP', () => { for (const old of Object.values(cluster.workers)) cluster.fork().once('listening', () => old.disconnect()) })
  process.on('SIGTERM', () => process.exit())
  fs.writeFileSync(`${TMP}/node.pid`, `${process.pid}\n`)
  return
}

// Until there is a byte, or the client is gone.
async function work (req, res) {
  if (!req.url.endsWith('?work')) return
  const socket = net.connect(ENDINGS_WORK)
  res.once('close', () => socket.destroy())
  socket.once('data', () => socket.destroy())
  await once(socket, 'close')
}

async function stream (req, res, path) {
  res.write('part')
  await work(req, res)
  while (path === '/stream' && !res.destroyed) {
    await setTimeout(20)
    res.write('part')
  }
  if (path === '/exception-during') throw new Error(path)
  res.end('part')
}

async function app (req, res) {
  const path = req.url.split('?')[0]
  if (['/stream', '/parts', '/exception-during'].includes(path)) return stream(req, res, path)
  if (path === '/crash') return setImmediate(() => { throw new Error(path) })
  if (path === '/timeout') return res.setTimeout(500)
  await work(req, res)
  while (['/slow', '/body'].includes(path) && !fs.existsSync(ENDINGS_GO) && !req.url.endsWith('?work')) await setTimeout(20)
  if (path === '/exception') throw new Error(path)
  if (path === '/redirect') res.writeHead(302, { Location: '/normal' })
  if (path === '/error') res.writeHead(404)
  res.end('ok\n')
}

function websocket (req, socket) {
  const accept = crypto.createHash('sha1').update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`)
  // What comes next is another text, or the end.
  socket.once('data', () => socket.write('\x81\x01x', 'latin1', () => socket.once('data', () => socket.end())))
}

const sockets = {
  handleUpgrade (req, socket) {
    if (req.url === '/websocket-refused') socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
    else websocket(req, socket)
  }
}

const busy = limit(`segment=${SEGMENT} rule=busy`, { keys: (req) => req.url === '/absent' ? null : 'all' })
const none = limit(`segment=${SEGMENT} rule=none`, { keys: (req) => req.url.startsWith('/denied') ? 'all' : null })
const limited = (req, res, next) => busy(req, res, () => none(req, res, next))
let served = 0
const server = http.createServer((req, res) => {
  if (++served === +RECYCLE) res.once('close', () => cluster.worker.disconnect())
  limited(req, res, () => app(req, res).catch(() => {
    if (res.headersSent) return res.destroy()
    res.statusCode = 500
    res.end()
  }))
})
UPGRADE
server.listen(PORT, '127.0.0.1')
END_OF_APP

configure_node() {
	block tools/node/README.md js "server.on('upgrade'" >"$TMP/upgrade.js"
	sed -i -e "/^UPGRADE\$/ { r $TMP/upgrade.js" -e 'd }' "$TMP/app.cjs"
}
run_node() { PORT=$port RECYCLE=$recycle exec setpriv --pdeathsig TERM node "$TMP/app.cjs" 2>"$TMP/node.err"; }

create_places
what='node:cluster'
recycle=0
start node
within four
common=normal,keep_alive,stream,head,exception,exception_during,denied,redirect,error,gone_before,gone_during,body_abandoned
# shellcheck disable=SC2046 # a list of names
endings $(echo $common | tr , ' ') timeout websocket websocket_server websocket_refused
answers=
for _ in $(seq $((PLACES + 1))); do
	answers="$answers$(codes "$url/crash") "
done
within all_free
is "$? $answers" "0 000 000 000 000 " "$what: workers that crash leave their places"
at_random 20 $common
begins
ends reload cut_off HUP
begins
ends sigterm cut_off TERM
wait "$master"
recycle=3
start node
before=$(workers)
for _ in $(seq 16); do
	codes "$url/normal" >/dev/null
done
replaced() { [ "$(workers)" != "$before" ]; }
ends recycled within replaced
stop
not_here internal
all_endings
done_testing
