// places: the laws of places: of a gate, of the middleware, and of a server that is killed.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const http = require('node:http')
const http2 = require('node:http2')
const net = require('node:net')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const { Limiter, Gate, Limit } = require(process.env.SHMLIMIT)
const { limit } = require(`${process.env.SHMLIMIT}/middleware.js`)

const segment = process.env.SEGMENT
const backend = 'backend=unix:///nonexistent/redis'
const spec = `segment=${segment} create=yes rule=hold rate="2 at once for 1h" local rule=few rate="5/day" local`

// A server whose responses are begun, and ended when `responses` are.
function serve (socketPath, text, responses, arrived) {
  const limited = limit(text, { keys: (req) => [req.url, req.headers['x-user']] })
  const server = http.createServer((req, res) => limited(req, res, () => {
    res.write('begun')
    responses.push(res)
    arrived?.()
  }))
  return new Promise((resolve) => server.listen(socketPath, () => resolve(server)))
}

if (process.send) {
  serve(process.argv[2], spec.replace('for 1h', 'for 2s'), [], () => process.send('arrived')).then(() => process.send('ready'))
  return
}

const { ok, is, thrown, until, done } = require('./tap.cjs')

function free (key) {
  const limiter = new Limiter(segment)
  limiter.peek('hold', key)
  return limiter.result.remaining
}

function shares () {
  const gate = new Gate(`segment=${segment}.shared create=yes rule=all rate="4 at once for 1h" rule=tenants share=1`)
  const entered = ['a', 'a', 'a', 'b', 'c', 'c'].map((tenant) => gate.enter(['all', tenant]))
  is(entered.map((places) => places !== null), [true, true, false, true, true, false], 'a key holds at most its share of the places that are free')
  for (const places of entered) places?.leave()
  is(gate.enter(['all', 'd']) !== null, true, 'places of a share are left')
}

function gates () {
  const gate = new Gate(spec)
  const { answer } = gate
  const [first, second, third] = [1, 2, 3].map((n) => gate.enter(['k', `user:${n}`]))
  is([first.held, second.held, third, answer.deniedBy, answer.remaining], [true, true, null, 0, 0], 'enter() gives as many places as there are')
  is(answer.fields, [['RateLimit-Policy', '"hold";q=2;qu="concurrent-requests"'], ['RateLimit', '"hold";r=0']],
    'a request without a place is told how many at once')
  is([gate.enter([null, 'user:4']).held, gate.enter([null, null]).held], [false, false], 'a request without such a limit has nothing to leave')
  first.leave()
  first.leave()
  is([first.held, free('k'), gate.ask(['k', null]), free('k')], [false, 1, true, 0], 'a place is left once; ask() takes one for the period')
  is([gate.enter(['other', 'user:5']) !== null, gate.enter(['other', 'user:5'], [1, 5]), answer.deniedBy, free('other')], [true, null, 1, 1],
    'a request that another limit denies leaves its places')
  is([thrown(() => gate.enter(['a', 'b', 'c'])), thrown(() => gate.enter(1))].map((text) => text.slice(0, 10)), ['RangeError', 'TypeError '],
    'enter() throws for keys that are none')
  const key = Buffer.from('changed')
  const places = gate.enter([key, null])
  key.fill(0)
  places.leave()
  is(free('changed'), 2, 'a place is left although its key was changed meanwhile')
  const late = gate.enter(['late', null])
  gate.close()
  late.leave()
  is([late.held, free('late')], [false, 1], 'a gate that was closed leaves its places to the period')
}

async function waits () {
  const gate = new Gate(`${backend} ${spec}`)
  const answers = await Promise.all([1, 2, 3].map(() => gate.enterAsync([Buffer.from('async'), null])))
  const held = answers.filter(({ allowed }) => allowed)
  is([held.length, held.map(({ places }) => places.held), answers.find(({ allowed }) => !allowed).places], [2, [true, true], null],
    'enterAsync() gives as many places as there are')
  for (const { places } of held) places.leave()
  is([free('async'), 'places' in await gate.askAsync(['async', null]), free('async')], [2, false, 1], 'places of enterAsync() are left, and askAsync() has none')
}

// A request; the promise has its response when that has begun.
function get (socketPath, path, headers) {
  const request = http.get({ socketPath, path, headers, agent: false })
  return new Promise((resolve, reject) => request.on('error', reject).on('response', (res) => resolve({ request, res: res.on('error', () => {}).resume() })))
}
const status = async (...call) => (await get(...call)).res.statusCode

async function requests (name, text) {
  const path = `/${name}`
  const socketPath = `${process.env.TMP}/${name}.sock`
  const responses = []
  const server = await serve(socketPath, text, responses)
  const first = await get(socketPath, path)
  const second = await get(socketPath, path)
  is([first.res.statusCode, second.res.statusCode, await status(socketPath, path), await status(socketPath, '/another')], [200, 200, 429, 200],
    `${name}: as many requests are in progress as a key has places`)
  responses[0].end()
  await until(() => free(path) === 1)
  ok(true, `${name}: a place is free when the response was sent`)
  second.request.destroy()
  await until(() => free(path) === 2)
  ok(true, `${name}: a place is free when the client is gone`)
  is([await status(socketPath, path, { 'X-User': 'one' }), free(path)], [200, 1], `${name}: a place can be entered again`)
  for (const res of responses) res.end()
  await until(() => free(path) === 2)
  server.close()
}

// The client is gone before the limits are asked.
async function late () {
  const limited = limit(spec, { keys: () => ['gone', null] })
  const socketPath = `${process.env.TMP}/late.sock`
  const server = http.createServer((req, res) => res.once('close', () => limited(req, res, () => server.emit('asked', free('gone')))))
  await new Promise((resolve) => server.listen(socketPath, resolve))
  const asked = once(server, 'asked')
  const request = http.get({ socketPath, agent: false }).on('error', () => {})
  server.once('request', () => request.destroy())
  is(await asked, [2], 'a request whose client is gone already holds no place')
  server.close()
}

// The same over HTTP/2, and one that ends as it should.
async function http2Requests () {
  const limited = limit(spec, { keys: (req) => [req.headers['x-key'], null] })
  const socketPath = `${process.env.TMP}/h2.sock`
  const server = http2.createServer((req, res) => {
    const asks = () => limited(req, res, () => server.emit('asked', free(req.headers['x-key'])) && res.end())
    if (req.url === '/late') res.once('close', () => setImmediate(asks))
    else asks()
  })
  await new Promise((resolve) => server.listen(socketPath, resolve))
  const session = http2.connect('http://localhost', { createConnection: () => net.connect(socketPath) })
  let asked = once(server, 'asked')
  session.request({ 'x-key': 'h2' }).resume().end()
  is(await asked, [1], 'HTTP/2: a request holds a place')
  await until(() => free('h2') === 2)
  ok(true, 'HTTP/2: a place is free when the response was sent')
  asked = once(server, 'asked')
  const stream = session.request({ ':path': '/late', 'x-key': 'h2' }).on('error', () => {})
  stream.end()
  server.once('request', () => stream.close(http2.constants.NGHTTP2_CANCEL))
  is(await asked, [2], 'HTTP/2: a request whose client is gone already holds no place')
  session.destroy()
  server.close()
}

async function kill () {
  const socketPath = `${process.env.TMP}/killed.sock`
  const child = fork(__filename, [socketPath])
  await once(child, 'message')
  const arrived = once(child, 'message')
  const request = http.get({ socketPath, path: '/killed', agent: false }).on('error', () => {})
  request.on('response', (res) => res.on('error', () => {}).resume())
  await arrived
  child.kill('SIGKILL')
  await once(child, 'exit')
  await until(() => free('/killed') === 2)
  ok(true, 'a place of a killed server is free after the period')
}

// A limit with delay=: requests wait by timers.
async function delays () {
  const gate = new Gate(`segment=${segment} create=yes rule=turns rate="20/s burst 1" delay=30s rule=hour rate="1/h burst 1" delay=1h`)
  const begun = Date.now()
  let ticks = 0
  const timer = setInterval(() => ticks++, 5)
  const answers = await Promise.all([1, 2, 3, 4].map(() => gate.enterAsync(['user:42', null])))
  clearInterval(timer)
  ok(answers.every((answer) => answer.allowed), 'requests that wait for their turn are all served')
  ok(Date.now() - begun >= 149 && ticks > 0, 'a turn comes with a token, and the event loop runs until then')
  await gate.enterAsync([null, 'user:42'])
  for (let i = 0; i < 2; i++) {
    const gone = new AbortController()
    const waits = gate.enterAsync([null, 'user:42'], undefined, gone)
    gone.abort()
    is(await waits.catch((error) => error.name), 'AbortError', 'a request that is aborted leaves its turn to the next')
  }
  gate.close()
}

// A limit with estimate=: what a request used is charged afterwards.
function left (rule, limit) {
  const limiter = new Limiter(segment)
  limiter.peek(rule, 'user:42', 1, limit && new Limit(limit))
  return limiter.result.remaining
}

function settles () {
  const gate = new Gate(`segment=${segment} create=yes rule=tokens rate="100/200 days" estimate=10 rule=other rate="9/day" rule=plans algorithm=gcra estimate=5`)
  const places = gate.enter(['user:42', 'user:42', { key: 'user:42', limit: '50/200 days' }])
  ok(places.held, 'a request that has paid an estimate has something to settle')
  const each = [[[40, null, null], 60, 45], [[40], 60, 45], [[null, 3, 20], 60, 30], [[0, null, 1], 100, 49]]
  for (const [used, tokens, plans] of each) {
    places.settle(used)
    is([left('tokens'), left('other'), left('plans', '50/200 days')].join(), [tokens, 8, plans].join(), `of ${JSON.stringify(used)} the difference is charged or given back, once`)
  }
  for (const used of [-1, 1.5, 7, [-1], ['x'], 'x']) ok(/^RangeError /.test(thrown(() => places.settle(used))), `a use is a whole number for each limit, and not ${JSON.stringify(used)}`)
  places.settle([300])
  ok(gate.enter(['user:42', null, null]) === null, 'what a request used too much is debt')
  places.leave()
  places.settle([0])
  ok(gate.enter(['user:42', null, null]) === null, 'a request that has ended is not settled again')
  gate.close()
}

async function charges () {
  const socketPath = `/tmp/${segment}.charge`
  const limited = limit(`segment=${segment} create=yes rule=charged rate="1000/200 days" estimate=10`, {
    keys: () => 'user:42',
    charge: (req, res) => { if (req.url === '/fails') throw new TypeError('charge'); return res.used }
  })
  const begun = []
  const server = http.createServer((req, res) => limited(req, res, () => {
    res.used = { '/used': 25, '/less': 3, '/gone': 50 }[req.url]
    if (req.url === '/gone') { res.write('begun'); begun.push(res) } else res.end('done')
  }))
  await new Promise((resolve) => server.listen(socketPath, resolve))
  const get = (path) => new Promise((resolve) => http.get({ socketPath, path, agent: false }, (res) => res.resume().on('end', resolve)))
  const warned = once(process, 'warning')
  let want = 1000
  for (const [path, cost] of [['/used', 25], ['/less', 3], ['/unknown', 10], ['/fails', 10]]) {
    want -= cost
    await get(path)
    await until(() => left('charged') === want)
    ok(true, `${path}: the response costs ${cost}`)
  }
  is((await warned)[0].name, 'TypeError', 'a charge that fails is a warning, and the estimate stays charged')
  const request = http.get({ socketPath, path: '/gone', agent: false }).on('error', () => {})
  await until(() => begun.length === 1)
  request.destroy()
  await until(() => left('charged') === want - 50)
  ok(true, 'a response whose client has gone is charged too')
  server.close()
}

async function main () {
  shares()
  gates()
  settles()
  await charges()
  await delays()
  await waits()
  await requests('sync', spec)
  await requests('async', `${backend} ${spec}`)
  await late()
  await http2Requests()
  await kill()
  Limiter.destroy(segment)
  done()
}

main()
