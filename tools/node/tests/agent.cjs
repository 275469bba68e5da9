// agent: the laws of requests that wait for the host's agent.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const fs = require('node:fs/promises')
const http = require('node:http')
const { spawnSync } = require('node:child_process')
const { Worker, isMainThread, parentPort } = require('node:worker_threads')
const { Limiter, Gate } = require(process.env.SHMLIMIT)
const { limit } = require(`${process.env.SHMLIMIT}/middleware.js`)

const { BACKEND, BACKEND_PID, AGENT_PID, SEGMENT, TMP } = process.env
const words = 'deadline=10000ms rule=shared rule=places'
const spec = `segment=${SEGMENT} backend=${BACKEND} agent=no ${words}`

// In a worker thread: one request holds a place, and another one waits.
if (!isMainThread) {
  const gate = new Gate(spec)
  gate.enter([null, 'thread'])
  gate.enterAsync(['thread', 'thread'])
  parentPort.postMessage('asked')
  return
}

const { ok, is, until, done } = require('./tap.cjs')
const backend = (signal) => process.kill(Number(BACKEND_PID), signal)
const status = () => JSON.parse(spawnSync('shmlimit', ['global', 'status', SEGMENT, '--json']).stdout)
const serving = () => (({ serving, pid, connections }) => serving && pid === process.pid && connections === 1)(status())
const waiting = (n) => until(() => status().waiting === n)

function free (key) {
  const limiter = new Limiter(SEGMENT)
  limiter.peek('places', key)
  return limiter.result.remaining
}

// The event loop turns until it has done so ten times more.
function turns () {
  let left = 10
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (--left > 0) return
      clearInterval(timer)
      resolve()
    })
  })
}

async function exact (gate) {
  const first = await gate.askAsync(['known', null])
  is([first.allowed, first.outcome, first.remaining], [true, 'passed', 4], 'a request that needs the agent gets its answer')
  is(first.fields.find(([name]) => name === 'RateLimit')[1].slice(0, 12), '"shared";r=4', 'the answer has the fields of its limit')
  const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => gate.enterAsync(['known', 'known'])))
  is(answers.map(({ allowed }) => allowed).sort(), [false, false, false, true, true, true], 'of requests at once, as many pass as both limits allow')
  for (const { places } of answers) places?.leave()
  is([free('known'), answers.filter(({ places }) => places?.held).length], [3, 0], 'requests that have waited leave their places')
}

// What happens while a request waits, in its order: nothing here is a matter of time.
async function goOn (gate) {
  const events = []
  const note = (event) => () => events.push(event)
  await fs.writeFile(`${TMP}/file`, 'text')
  while ((await gate.askAsync(['known', null])).allowed) { /* until its denial is known */ }
  backend('SIGSTOP')
  const waits = ['a', 'b', 'c', 'd'].map((key) => gate.enterAsync([key, key]).then(note('waited')))
  await waiting(4)
  await turns().then(note('timer'))
  await gate.askAsync(['known', null]).then(note('known'))
  await gate.askAsync([null, 'here']).then(note('here'))
  await gate.askAsync([null, null]).then(note('unlimited'))
  await fs.readFile(`${TMP}/file`).then(note('file'))
  is(free('a'), 2, 'a request that waits holds its place')
  backend('SIGCONT')
  await Promise.all(waits)
  return events
}

async function end (gate) {
  backend('SIGSTOP')
  const gone = new AbortController()
  const answer = gate.enterAsync(['abort', 'abort'], 1, { signal: gone.signal }).catch((error) => error.name)
  await waiting(1)
  gone.abort()
  is([await answer, free('abort')], ['AbortError', 3], 'a request that is aborted leaves its place')
  is(await gate.askAsync(['abort', null], 1, gone).catch((error) => error.name), 'AbortError', 'a request that was aborted before is not made')

  const closed = new Gate(spec)
  const late = closed.enterAsync(['closed', 'closed']).catch((error) => error.code)
  await waiting(1)
  closed.close()
  is([await late, free('closed')], ['EBADF', 3], 'a request leaves its place when its gate is closed')

  const worker = new Worker(__filename)
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  await waiting(1)
  is(free('thread'), 1, 'a worker thread holds two places, and one of its requests waits')
  await worker.terminate()
  is([status().waiting, free('thread')], [0, 3], 'a worker thread that is terminated leaves its places, and nothing waits for it')
  backend('SIGCONT')
  is((await Promise.all([1, 2, 3, 4, 5, 6].map(() => gate.askAsync(['thread', null])))).filter(({ allowed }) => allowed).length, 5,
    'requests that were not wanted any more have taken no tokens')
}

async function serve () {
  const limited = limit(spec, { keys: (req) => [req.headers['x-client'], req.headers['x-client'] && 'all'] })
  const server = http.createServer((req, res) => limited(req, res, () => res.end('page')))
  const socketPath = `${TMP}/http.sock`
  await new Promise((resolve) => server.listen(socketPath, resolve))
  const request = (client, answered) => http.get({ socketPath, agent: false, headers: client && { 'X-Client': client } }, (res) => answered(res.resume().statusCode))
  const get = (client) => new Promise((resolve, reject) => request(client, resolve).on('error', reject))

  backend('SIGSTOP')
  const events = []
  const waits = get('waits').then((code) => events.push(`waits ${code}`))
  await waiting(1)
  events.push(`unlimited ${await get()}`, `known ${await get('known')}`)
  const gone = request('gone', () => events.push('gone')).on('error', () => {})
  await waiting(2)
  gone.destroy()
  await waiting(1)
  await until(() => free('all') === 2)
  events.push('left')
  backend('SIGCONT')
  await waits
  is(events, ['unlimited 200', 'known 429', 'left', 'waits 200'],
    'the middleware serves others while a request waits, and a client that goes away ends its request')
  server.close()
}

// Without the service: the request waits in a thread of libuv; without agent=no a thread of this process becomes the agent.
async function replace (gate) {
  backend('SIGSTOP')
  const answer = gate.askAsync(['orphan', null])
  await waiting(1)
  process.kill(Number(AGENT_PID), 'SIGKILL')
  await until(() => !status().serving)
  await turns()
  backend('SIGCONT')
  is((await answer).outcome, 'passed', 'a request whose agent was killed is answered all the same')
  const threaded = new Gate(`segment=${SEGMENT} backend=${BACKEND} ${words}`)
  let key = 0
  await until(async () => (await threaded.askAsync([`new${key++}`, null])).allowed && serving())
  ok(true, 'without agent=no this process is the agent')
  const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => gate.askAsync(['another', null])))
  is(answers.filter(({ allowed }) => allowed).length, 5, 'the limit is exact with that thread')
  threaded.close()
  is(status().serving, false, 'the thread ends with its gate')
}

async function main () {
  const gate = new Gate(spec)
  await exact(gate)
  is(await goOn(gate), ['timer', 'known', 'here', 'unlimited', 'file', 'waited', 'waited', 'waited', 'waited'],
    'while requests wait, timers tick, other requests are decided, and libuv has its thread')
  await end(gate)
  await serve()
  await replace(gate)
  done()
}

main()
