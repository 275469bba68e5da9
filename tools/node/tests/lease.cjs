// lease: the laws of a gate that may wait for a Redis server.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const http = require('node:http')
const { execFileSync } = require('node:child_process')
const { Worker, isMainThread, parentPort } = require('node:worker_threads')
const { Gate } = require(process.env.SHMLIMIT)
const { limit } = require(`${process.env.SHMLIMIT}/middleware.js`)

const { BACKEND, SEGMENT } = process.env
// No test depends on speed, so the server has time.
const spec = (host, more = 'deadline=10000ms') => `segment=${SEGMENT}.${host} backend=${BACKEND} agent=no ${more} rule=page`

// In a worker thread: ask while the server does not answer.
if (!isMainThread) {
  new Gate(spec('one')).askAsync('worker')
  parentPort.postMessage('asked')
  return
}

const { ok, is, until, done } = require('./tap.cjs')
const backend = (signal) => process.kill(Number(process.env.BACKEND_PID), signal)

async function share () {
  const gates = ['one', 'two'].map((host) => new Gate(spec(host)))
  is(gates.map((gate) => gate.mayWait), [true, true], 'a gate knows that it may wait')
  // All that each host gets, one request after the other on both at once.
  const counts = await Promise.all(gates.map(async (gate) => {
    let admitted = 0
    while ((await gate.askAsync('k')).allowed) admitted++
    return admitted
  }))
  const lost = ['one', 'two'].map((host) => JSON.parse(execFileSync('shmlimit', ['inspect', `${SEGMENT}.${host}`, '--json'])).leases.expired)
  const [admitted, expired] = [counts, lost].map(([one, two]) => one + two)
  ok(admitted > 0 && admitted + expired <= 300, 'two hosts together admit no more than the limit')
  const answer = await gates[0].askAsync('k')
  is([answer.outcome, answer.status], ['rejected', 429], 'a request above it is rejected')
  return gates[0]
}

async function goOn (gate) {
  let turns = 0
  let answered = false
  backend('SIGSTOP')
  const answer = gate.askAsync('patient').finally(() => { answered = true })
  const tick = () => { turns++; if (!answered) setImmediate(tick) }
  tick()
  await until(() => turns > 10)
  is(answered, false, 'the event loop goes on while the server is asked')
  backend('SIGCONT')
  is(['passed', 'rejected'].includes((await answer).outcome), true, 'the answer comes when the server goes on')

  backend('SIGSTOP')
  const worker = new Worker(__filename)
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  const ended = worker.terminate()
  backend('SIGCONT')
  is(typeof await ended, 'number', 'a worker thread that is terminated while it asks ends')
}

async function serve () {
  const limited = limit(spec('two'), { keys: (req) => req.headers['x-client'] })
  const server = http.createServer((req, res) => limited(req, res, () => res.end('page')))
  const socketPath = `${process.env.TMP}/http.sock`
  await new Promise((resolve) => server.listen(socketPath, resolve))
  const get = (client) => new Promise((resolve, reject) => {
    http.get({ socketPath, agent: false, headers: { 'X-Client': client } }, (res) => res.resume().on('end', () => resolve(res.statusCode))).on('error', reject)
  })
  is([await get('another'), await get('k')], [200, 429], 'the middleware asks in another thread')
  server.close()
}

async function fail () {
  const reports = []
  const gate = new Gate(spec('one', 'fail=open deadline=100ms'), { report: (bad, text) => reports.push([bad, text]) })
  backend('SIGKILL')
  is((await gate.askAsync('later')).allowed, true, 'fail=open lets a request pass while the server is gone')
  await until(() => reports.length > 0)
  is(reports[0][0], true, 'a problem that another thread had is reported')
}

async function main () {
  const gate = await share()
  await goOn(gate)
  await serve()
  await fail()
  done()
}

main()
