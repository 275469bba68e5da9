// forwarded: the middleware says once in a process that all clients behind a proxy are one, in Express and in node:http.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const http = require('node:http')
const { once } = require('node:events')
const { is, done } = require('./tap.cjs')
const { fork } = require('node:child_process')

const segment = process.env.SEGMENT
const SAID = /^a request from 127\.0\.0\.1 has a field (.*): behind a proxy all clients are one, .*\(app\.set\('trust proxy', \.\.\.\) names proxies in Express/

// In a process of its own: three requests with these header fields, whose reports go to the parent.
async function child (kind, spec, headers, proxies, keys) {
  const { limit } = require(`${process.env.SHMLIMIT}/middleware`)
  const lines = []
  const report = (bad, text) => lines.push(text)
  const use = limit(`segment=${segment} create=yes ${spec} rule=client rate=60/day`, { report, ...(keys && { keys: () => [keys] }) })
  let server
  if (kind === 'express') {
    const app = require('express')()
    if (proxies) app.set('trust proxy', proxies)
    app.use(use)
    app.get('/', (req, res) => res.send('page'))
    server = app.listen(0, '127.0.0.1')
  } else server = http.createServer((req, res) => use(req, res, () => res.end('page'))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const codes = []
  for (const fields of [{}, headers, headers, headers]) {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers: fields })
    codes.push(answer.status)
    await answer.text()
  }
  await new Promise((resolve) => setImmediate(resolve))
  process.send({ codes, lines }, () => process.exit())
}

// In a process of its own: of each run of requests, how many are looked at for such fields; and how often it is reported.
function count (runs) {
  const { limit } = require(`${process.env.SHMLIMIT}/middleware`)
  const lines = []
  const report = (bad, text) => lines.push(text)
  const uses = {}
  const looked = runs.map(([name, spec, fields, requests]) => {
    let sum = 0
    uses[name] ??= limit(`segment=${segment} create=yes ${spec} rule=client rate=1000000/s`, { report })
    for (let i = 0; i < requests; i++) {
      let looks = 0
      const headers = new Proxy(fields, { get: (from, field) => { looks = 1; return from[field] } })
      uses[name]({ headers, socket: { remoteAddress: '127.0.0.1' } }, { setHeader () {}, end () {} }, () => {})
      sum += looks
    }
    return sum
  })
  setImmediate(() => process.send([looked, lines.length], () => process.exit()))
}

async function counts (...runs) {
  const process_ = fork(__filename, [JSON.stringify(runs), 'count'])
  const [answers] = await once(process_, 'message')
  return answers
}

async function said (...given) {
  const process_ = fork(__filename, [JSON.stringify(given)])
  const [{ codes, lines }] = await once(process_, 'message')
  return [codes.every((code) => code === 200), ...lines.map((line) => SAID.exec(line)?.[1] ?? line)]
}

async function main () {
  const field = { 'X-Forwarded-For': '203.0.113.9' }
  let kinds = ['http', 'express']
  try {
    require('express')
  } catch {
    kinds = ['http']
  }
  for (const kind of kinds) {
    is(await said(kind, '', field), [true, 'X-Forwarded-For'], `${kind}: it is reported once`)
    for (const name of ['Forwarded', 'X-Real-IP', 'CF-Connecting-IP']) {
      is(await said(kind, '', { [name]: '203.0.113.9' }), [true, name], `${kind}: ${name} is such a field`)
    }
    is(await said(kind, 'agent=no delay=1s', field), [true, 'X-Forwarded-For'], `${kind}: it is reported of a limit that may wait, too`)
    is(await said(kind, '', { 'X-Forwarded-For': '203.0.113.9, 127.0.0.1' }), [true], `${kind}: an address that is in the field was put in the peer's place`)
    is(await said(kind, 'proxy_warning=no', field), [true], `${kind}: proxy_warning=no says nothing`)
    is(await said(kind, '', field, null, 'user:42'), [true], `${kind}: a key that is not the address says nothing`)
  }
  if (kinds.includes('express')) is(await said('express', '', field, 'loopback'), [true], 'express: a proxy that is trusted says nothing')
  const x = { 'x-forwarded-for': '203.0.113.9' }
  is(await counts(['a', '', x, 1], ['a', '', x, 99], ['b', '', x, 99]), [[1, 0, 0], 1], 'after the report no request is looked at')
  is(await counts(['a', '', {}, 1], ['b', '', x, 1], ['a', '', x, 99]), [[1, 1, 1], 1], 'after the report of another middleware one more request is looked at')
  is(await counts(['a', 'proxy_warning=no', x, 99]), [[0], 0], 'with proxy_warning=no no request is looked at')
  is(await counts(['a', '', {}, 20000], ['a', '', x, 100]), [[10100, 1], 1], 'of requests without a field one in a hundred is looked at in the end')
  done()
}

if (process.argv[3]) count(JSON.parse(process.argv[2]))
else if (process.argv[2]) child(...JSON.parse(process.argv[2]))
else main()
