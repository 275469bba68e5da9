// hosts: the laws of the stores on two hosts, which are segments, with one backend.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { fork } = require('node:child_process')
const fs = require('node:fs')
const Module = require('node:module')
const library = process.env.SHMLIMIT
const { GlobalCounts } = require(library)
const { ShmlimitStore } = require(`${library}/stores/express-rate-limit.js`)
const { shmlimitStore } = require(`${library}/stores/fastify.js`)
const { ShmlimitThrottlerStorage } = require(`${library}/stores/nestjs.js`)
const { ok, is, thrown, done } = require('./tap.cjs')

const name = process.env.SEGMENT
const backend = process.env.BACKEND
const HOUR = 3600e3
const LIMIT = 30
const on = (host, more) => ({ segment: `${name}.${host}`, slots: 64, backend, deadlineMs: 5000, ...more })

function express (host, limit, more) {
  const store = new ShmlimitStore(on(host, more))
  store.init({ windowMs: HOUR, limit })
  return store
}

const rejected = (promise) => promise.then(() => '', (error) => `${error.name} ${error.code ?? '-'}: ${error.message}`)

// A worker makes as many requests as it is told, and then waits to be killed.
async function work (host, times) {
  const store = express(host, LIMIT)
  process.on('message', () => {}) // it lives on
  for (let i = 0; i < times; i++) process.send((await store.increment('crowd')).totalHits <= LIMIT)
}

// Two hosts of two workers each. One of them, which is its host's agent, is killed after 5 requests, and replaced.
async function crowd () {
  const workers = []
  let admitted = 0
  const start = (host, times) => new Promise((resolve) => {
    const worker = fork(__filename, ['work', host, String(times)])
    workers.push(worker)
    worker.on('message', (does) => {
      admitted += does
      if (--times === 0) resolve()
    })
  })
  await start('one', 5)
  workers[0].kill('SIGKILL')
  await Promise.all(['one', 'two', 'one', 'two'].map((host) => start(host, 20)))
  for (const worker of workers) worker.kill('SIGKILL')
  return admitted
}

async function expressLaws () {
  const hosts = [express('one', 3), express('two', 3)]
  const totals = []
  for (const host of [0, 1, 0, 1, 0]) totals.push((await hosts[host].increment('a')).totalHits)
  is(totals, [1, 2, 3, 4, 4], 'express: a request counts on all hosts, up to the limit')
  is([hosts[1].get('a').totalHits, hosts[1].get('none')], [3, undefined], 'express: a host knows what it was answered')
  await hosts[0].resetKey('a')
  is((await hosts[0].increment('a')).totalHits, 1, 'express: resetKey() is one on all hosts')
  await hosts[0].increment('b')
  await hosts[0].resetAll()
  is([(await hosts[0].increment('a')).totalHits, (await hosts[0].increment('b')).totalHits], [1, 1], 'express: resetAll() is one on all hosts')
  is(thrown(() => hosts[0].decrement('a')), 'TypeError -: decrement(): not with a backend', 'express: there is no decrement()')
  is(thrown(() => hosts[0].init({ windowMs: HOUR, skipFailedRequests: true })), 'TypeError -: skipFailedRequests, skipSuccessfulRequests: not with a backend',
    'express: what would need it is refused at start')
  hosts[0].shutdown() // another store of the segment may have its rule then
  const readme = fs.readFileSync(`${process.env.TMP}/readme.js`, 'utf8').replace("'web'", `'${name}.one'`).replace('redis://redis.example.com', backend)
  const shared = new Function('ShmlimitStore', `${readme}; return store`)(ShmlimitStore) // eslint-disable-line no-new-func
  shared.init({ windowMs: HOUR, limit: 3 })
  is([(await shared.increment('readme')).totalHits, (await hosts[1].increment('readme')).totalHits], [1, 2], 'README: the store counts on all hosts')
  shared.shutdown()
  const open = express('one', () => 3)
  is((await open.increment('f')).totalHits, 1, 'express: a limit may be a function')
  for (const store of [hosts[1], open]) store.shutdown()
}

async function fastifyLaws () {
  const Stores = ['one', 'two'].map((host) => shmlimitStore(on(host)))
  const take = (store, max = 2) => new Promise((resolve) => store.incr('a', (error, got) => resolve(error ?? got.current), HOUR, max))
  const stores = Stores.map((Store) => new Store({}))
  is([await take(stores[0]), await take(stores[1]), await take(stores[0]), await take(stores[1])], [1, 2, 3, 3], 'fastify: a request counts on all hosts, up to the limit')
  const child = stores[0].child({ ban: 1, routeInfo: { method: 'GET', url: '/login' } })
  const counts = []
  for (let i = 0; i < 6; i++) counts.push(await take(child))
  is(counts, [1, 2, 3, 4, 5, 5], 'fastify: what is refused counts towards a ban')
  for (const option of ['continueExceeding', 'exponentialBackoff']) {
    is(thrown(() => new Stores[0]({ [option]: true })), 'TypeError -: continueExceeding, exponentialBackoff: not with a backend', `fastify: ${option} is refused at start`)
  }
}

async function nestLaws () {
  const storages = ['one', 'two'].map((host) => new ShmlimitThrottlerStorage(on(host)))
  const ask = (host, blockDuration = HOUR) => storages[host].increment('a', HOUR, 2, blockDuration, 'default')
  is([await ask(0), await ask(1)].map(({ totalHits, isBlocked }) => [totalHits, isBlocked]), [[1, false], [2, false]], 'nestjs: a request counts on all hosts')
  const { totalHits, isBlocked, timeToBlockExpire } = await ask(0)
  is([totalHits, isBlocked, timeToBlockExpire > 1800 && timeToBlockExpire <= 3600], [3, true, true], 'nestjs: a block ends with the window')
  is(await rejected(ask(0, 2 * HOUR)), 'TypeError -: a blockDuration that is not ttl: not with a backend', 'nestjs: another duration is refused')
  for (const storage of storages) storage.onApplicationShutdown()
}

// What a limiter needs of rate-limiter-flexible.
async function flexibleLaws () {
  const load = Module._load
  class RateLimiterRes {
    constructor (remainingPoints, msBeforeNext, consumedPoints) { Object.assign(this, { remainingPoints, msBeforeNext, consumedPoints }) }
  }
  class StoreAbstract {
    constructor (options) { Object.assign(this, options) }
  }
  Module._load = (it, ...rest) => it === 'rate-limiter-flexible' ? { RateLimiterRedis: class extends StoreAbstract {}, RateLimiterRes } : load(it, ...rest)
  const { RateLimiterShmlimit } = require(`${library}/stores/rate-limiter-flexible.js`)
  Module._load = load
  const limiters = ['one', 'two'].map((host) => new RateLimiterShmlimit({ ...on(host), points: 3, duration: 3600 }))
  const consume = async (host, points) => (await limiters[host]._upsert('k', points, HOUR)).count
  is([await consume(0, 1), await consume(1, 2), await consume(0, 1), await consume(1, 1)], [1, 3, 4, 4], 'rate-limiter-flexible: points add up on all hosts, up to the limit')
  is([await consume(0, 0), (await limiters[1]._get('k')).count], [3, 3], 'rate-limiter-flexible: a host knows what it was answered')
  is([await limiters[0]._delete('k'), await consume(0, 3)], [true, 3], 'rate-limiter-flexible: delete is one on all hosts')
  for (const [points, force] of [[-1, false], [1, true]]) {
    is(await rejected(limiters[0]._upsert('k', points, HOUR, force)), 'TypeError -: set(), block() and reward(): not with a backend', `rate-limiter-flexible: ${force ? 'a block' : 'a reward'} is refused`)
  }
  is(thrown(() => new RateLimiterShmlimit({ ...on('one'), blockDuration: 5 })), 'TypeError -: blockDuration: not with a backend', 'rate-limiter-flexible: blockDuration is refused at start')
  for (const limiter of limiters) limiter.close()
}

// Without the backend.
async function outage () {
  const gone = { backend: `unix://${process.env.TMP}/nobody`, deadlineMs: 50 }
  const ask = async (host, more) => (await express(host, 4, { ...gone, ...more }).increment('k')).totalHits <= 4
  is([await ask('deny'), await ask('allow', { onFailure: 'allow' }), await ask('local', { localShare: 500 })], [false, true, true], 'without the backend onFailure decides')
  const local = express('share', 4, { ...gone, localShare: 500 })
  const answers = []
  for (let i = 0; i < 3; i++) answers.push((await local.increment('k')).totalHits <= 4)
  is(answers, [true, true, false], 'a share is kept')
  is(await rejected(express('error', 4, { ...gone, onFailure: 'error' }).increment('k')), "ShmlimitError EHOSTDOWN: EHOSTDOWN: the limit's Redis server does not answer, count 'express-rate-limit'", 'onFailure error is an error')
  for (const wrong of [{ localShare: 5, onFailure: 'deny' }, { onFailure: 'local' }, { onFailure: 'perhaps' }, { backend: undefined, localShare: 5 }, { backend: 'http://h' }, { perhaps: 1 }]) {
    ok(/^(Type|Range|Shmlimit)Error/.test(thrown(() => express('wrong', 4, wrong))), `wrong options are refused: ${Object.keys(wrong)}`)
  }
  const counts = new GlobalCounts(`${name}.one`, { backend })
  counts.close()
  is(await rejected(counts.count('express-rate-limit', 'k', 1, HOUR, 1)), "ShmlimitError EBADF: EBADF: it is closed, count 'express-rate-limit'", 'what was closed is an error')
}

async function main () {
  is(await crowd(), LIMIT, 'two hosts of several workers, one of them killed, admit exactly the limit')
  await expressLaws()
  await fastifyLaws()
  await nestLaws()
  await flexibleLaws()
  await outage()
  done()
  process.exit()
}

if (process.argv[2] === 'work') work(process.argv[3], Number(process.argv[4]))
else main()
