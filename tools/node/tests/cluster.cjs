// cluster: the laws of many workers: those that compete for one key, and servers behind one socket.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const cluster = require('node:cluster')
const fs = require('node:fs')
const http = require('node:http')
const { once } = require('node:events')
const { Limiter } = require(process.env.SHMLIMIT)
const { limit } = require(`${process.env.SHMLIMIT}/middleware.js`)

const segment = process.env.SEGMENT
const HOUR = 3600e3
const CAPACITY = 50000 // of the key that workers compete for
const KILLS = 3 // that must come while there are tokens left

// Each admission is a byte in a file, which a kill does not take back.
function compete () {
  const { FILE, KEY } = process.env
  const limiter = new Limiter(segment)
  const rule = limiter.ruleFind('race')
  const file = fs.openSync(FILE, 'a')
  let told = false
  while (limiter.take(rule, KEY)) {
    fs.writeSync(file, 'x')
    if (!told) process.send('begun')
    told = true
  }
  process.exit()
}

function serve () {
  const limited = limit(`segment=${segment}.http create=yes rule=client rate="10/hour" rule=site rate="1000/hour"`, {
    keys: (req) => [req.headers['x-client'], 'all']
  })
  http.createServer((req, res) => {
    res.setHeader('X-Worker', process.pid)
    limited(req, res, () => res.end('page\n'))
  }).listen(process.env.SOCKET)
}

if (cluster.isWorker) {
  if (process.env.KEY) compete()
  else serve()
  return
}

const { ok, is, done } = require('./tap.cjs')

async function race () {
  const limiter = Limiter.create(segment, { slots: 256 })
  limiter.ruleSet('race', { capacity: CAPACITY, refill: 1, periodMs: HOUR })
  let kills = 0
  const wrong = []
  for (let round = 0; kills < KILLS && round < 40; round++) {
    const FILE = `${process.env.TMP}/race.${round}`
    const size = () => fs.statSync(FILE).size
    const workers = [1, 2, 3, 4].map(() => cluster.fork({ FILE, KEY: `k${round}` }))
    let killed = 0
    for (const worker of workers.slice(0, 2)) {
      worker.once('message', () => {
        if (size() < CAPACITY - 1000) kills++
        killed++
        worker.process.kill('SIGKILL')
      })
    }
    await Promise.all(workers.map((worker) => once(worker, 'exit')))
    // A worker that is killed between its take and its byte has admitted a request that is not counted.
    if (size() > CAPACITY || size() < CAPACITY - killed) wrong.push([size(), killed])
    if (limiter.peek('race', `k${round}`)) wrong.push('tokens are left')
    fs.unlinkSync(FILE)
  }
  is(wrong, [], 'four workers that compete for a key, and are killed, are admitted its capacity together')
  ok(kills >= KILLS, 'workers were killed while there were tokens')
}

function get (client) {
  return new Promise((resolve, reject) => {
    http.get({ socketPath: process.env.SOCKET, agent: false, headers: { 'X-Client': client } }, (res) => {
      let body = ''
      res.on('data', (data) => { body += data }).on('end', () => resolve({ status: res.statusCode, headers: res.headers, raw: res.rawHeaders, body }))
    }).on('error', reject)
  })
}

async function start () {
  const worker = cluster.fork()
  await Promise.race([once(worker, 'listening'), once(worker, 'exit').then(() => { throw new Error('a server ended by itself') })])
  return worker
}

async function servers () {
  process.env.SOCKET = `${process.env.TMP}/http.sock`
  const workers = await Promise.all([1, 2, 3, 4].map(start))
  const answers = []
  for (let i = 0; i < 40; i++) {
    if (i % 5 === 4) {
      const worker = workers.shift()
      worker.process.kill('SIGKILL')
      await once(worker, 'exit')
      workers.push(await start())
    }
    answers.push(await get('203.0.113.9'))
  }
  is(answers.map(({ status }) => status), answers.map((_, i) => i < 10 ? 200 : 429), 'servers of which workers are killed admit exactly the limit')
  ok(new Set(answers.slice(0, 10).map(({ headers }) => headers['x-worker'])).size > 2, 'several workers admitted them')
  is([answers[0].body, answers[10].body], ['page\n', 'Too Many Requests\n'], 'a request that is admitted gets its page, and another is refused in words')
  const fields = ({ raw }) => raw.flatMap((name, i) => i % 2 === 0 && /ratelimit|retry/i.test(name) ? [`${name}: ${raw[i + 1]}`] : [])
  is(fields(answers[0]), ['RateLimit-Policy: "client";q=10;w=3600', 'RateLimit-Policy: "site";q=1000;w=3600', 'RateLimit: "client";r=9;t=360',
    'RateLimit: "site";r=999;t=4'], 'an answer has the fields of each limit')
  is(fields(answers[10]).map((field) => field.replace(/\d+$/, 'N')), ['RateLimit-Policy: "client";q=10;w=N', 'RateLimit: "client";r=0;t=N', 'Retry-After: N'],
    'a refusal has those of the limit that denies')
  is((await get('203.0.113.10')).status, 200, 'another client has a limit of its own')
  await Promise.all(workers.map((worker) => { worker.process.kill(); return once(worker, 'exit') }))
}

async function main () {
  await race()
  await servers()
  done()
}

main()
