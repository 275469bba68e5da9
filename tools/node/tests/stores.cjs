// stores: what the stores answer. rate-limiter-flexible is not there: its limiter stands on a part of it made here.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const fs = require('node:fs')
const Module = require('node:module')
const library = process.env.SHMLIMIT
const { Limiter } = require(library)
const { ShmlimitStore } = require(`${library}/stores/express-rate-limit.js`)
const { shmlimitStore } = require(`${library}/stores/fastify.js`)
const { ShmlimitThrottlerStorage } = require(`${library}/stores/nestjs.js`)
const { ok, is, thrown, until, done } = require('./tap.cjs')

const segment = process.env.SEGMENT
const HOUR = 3600e3
const soon = (date, ms) => date - Date.now() > ms - HOUR / 2 && date - Date.now() <= ms

async function express () {
  is(thrown(() => new ShmlimitStore()), 'TypeError -: the store needs { segment: NAME }', 'a store without a segment is refused')
  const store = new ShmlimitStore({ segment, slots: 256, mode: 0o600 })
  const another = new ShmlimitStore({ segment, rule: 'another' })
  store.init({ windowMs: HOUR })
  another.init({ windowMs: HOUR })
  is(new Limiter(segment).ruleFind('express-rate-limit'), 0, 'express: a store creates the segment and its rule')
  is(store.get('a'), undefined, 'express: a client that was never seen has no count')
  is([1, 2, 3].map(() => store.increment('a').totalHits), [1, 2, 3], 'express: increment() counts')
  ok(soon(store.increment('b').resetTime, HOUR), 'express: a window begins with the first request')
  is([store.get('a').totalHits, soon(store.get('a').resetTime, HOUR)], [3, true], 'express: get() counts nothing')
  store.decrement('a')
  store.decrement('none')
  is([store.get('a').totalHits, store.get('none')], [2, undefined], 'express: decrement() takes a request back, but none that was not there')
  is([another.increment('a').totalHits, store.get('a').totalHits], [1, 2], 'express: stores with other rules count for themselves')
  is([thrown(() => new ShmlimitStore({ segment })), typeof shmlimitStore({ segment, rule: 'third' })],
    [`TypeError -: segment ${segment}: another store has the rule express-rate-limit, and two would share their counts: give each a rule of its own`, 'function'],
    'express: two stores without a rule would be one limit, which is refused')
  is([store.prefix === another.prefix, store.localKeys], [false, false], 'express: and have other prefixes')
  store.resetKey('a')
  is([store.get('a'), store.get('b').totalHits], [undefined, 1], 'express: resetKey() forgets one client')
  store.resetAll()
  is([store.get('b'), another.get('a').totalHits], [undefined, 1], 'express: resetAll() forgets all of its rule')
  const long = 'k'.repeat(1025)
  is([long, `${long}1`, '', '\u20ac'.repeat(1000), 7].map((key) => [store.increment(key), store.increment(key)].at(-1).totalHits), [2, 2, 2, 2, 2],
    'express: a key may be anything')

  new Limiter(segment).ruleRemove('express-rate-limit')
  is(store.increment('a').totalHits, 1, 'express: a rule that was removed is set again')
  Limiter.destroy(segment)
  Limiter.create(segment, { slots: 64 })
  await until(() => { store.increment('seen'); return new Limiter(segment).reset() > 0 })
  is(store.increment('c').totalHits, 1, 'express: a segment that was replaced is opened again')
  store.shutdown()
  is(thrown(() => new ShmlimitStore({ segment }).shutdown()), '', 'express: a store that was shut down has left its rule to the next one')
}

function fastify () {
  const Store = shmlimitStore({ segment, rule: 'fastify' })
  is(thrown(() => [shmlimitStore({ segment: `${segment}.f` }), shmlimitStore({ segment: `${segment}.f` })]),
    `TypeError -: segment ${segment}.f: another store has the rule fastify-rate-limit, and two would share their counts: give each a rule of its own`,
    'fastify: two stores without a rule would be one limit, which is refused')
  Limiter.destroy(`${segment}.f`)
  const take = (store, key, max = 2) => { let got; store.incr(key, (error, found) => { got = error ?? found }, HOUR, max); return got }
  const read = (store, key) => { let got; store.read(key, (error, found) => { got = error ?? found }, HOUR, 2); return got }
  const plain = new Store({})
  is([take(plain, 'a'), take(plain, 'a')].map(({ current }) => current), [1, 2], 'fastify: incr() counts')
  const third = take(plain, 'a')
  is([third.current, third.ttl <= HOUR && third.ttl > HOUR / 2], [3, true], 'fastify: the window is not prolonged')
  is([read(plain, 'a').current, read(plain, 'none')], [3, { current: 0, ttl: 0 }], 'fastify: read() counts nothing')
  const child = plain.child({ routeInfo: { method: 'GET', url: '/login' } })
  is([take(child, 'a').current, take(new Store({}), 'a').current], [1, 4], 'fastify: a route with its own limits has its own counts')
  const backoff = new Store({ exponentialBackoff: true })
  is([1, 2, 3, 4, 5].map(() => Math.ceil(take(backoff, 'e').ttl / HOUR)), [1, 1, 1, 2, 4], 'fastify: exponentialBackoff doubles the wait')
  ok(read(backoff, 'e').ttl > 3.5 * HOUR, 'fastify: and the count lives as long')
  const keen = new Store({ continueExceeding: true })
  is([1, 2, 3].map(() => take(keen, 'c').ttl).at(-1), HOUR, 'fastify: continueExceeding begins the window again')
  is(take(plain, 'x'.repeat(3000)).current, 1, 'fastify: a key may be long')
}

async function nest () {
  const storage = new ShmlimitThrottlerStorage({ segment })
  const ask = (key, blockDuration = 2 * HOUR) => storage.increment(key, HOUR, 2, blockDuration, 'default')
  is(await ask('a'), { totalHits: 1, timeToExpire: 3600, isBlocked: false, timeToBlockExpire: 0 }, 'nestjs: the first request begins the time')
  const { timeToExpire, ...second } = await ask('a')
  is(second, { totalHits: 2, isBlocked: false, timeToBlockExpire: 0 }, 'nestjs: requests up to the limit pass')
  ok(timeToExpire <= 3600 && timeToExpire > 1800, 'nestjs: a request leaves the time alone')
  is(await ask('a'), { totalHits: 3, timeToExpire: 7200, isBlocked: true, timeToBlockExpire: 7200 }, 'nestjs: the next one begins a block')
  const again = await ask('a')
  is([again.totalHits, again.isBlocked, again.timeToBlockExpire > 3600 && again.timeToBlockExpire <= 7200], [3, true, true],
    'nestjs: requests while it lasts add nothing')
  await ask('b', 0)
  await ask('b', 0)
  const blocked = await ask('b', 0)
  is([blocked.isBlocked, blocked.timeToBlockExpire <= 3600], [true, true], 'nestjs: without a duration the block ends with the window')
  const other = await storage.increment('a', HOUR, 2, 0, 'other')
  is([other.totalHits, (await storage.increment('none', HOUR, 0, 0, 'x')).isBlocked], [1, true], 'nestjs: throttlers count for themselves, and a limit of 0 blocks')
  storage.onApplicationShutdown()
}

// Each store, with periods of more than a year.
async function years () {
  const YEAR = 366 * 24 * HOUR
  const limiter = new Limiter(segment)
  limiter.ruleSet('express-years', { capacity: 1, refill: 1, periodMs: 1 })
  const store = new ShmlimitStore({ segment, rule: 'express-years' })
  is([store.increment('a').totalHits, store.increment('a').totalHits], [1, 2], 'a store that starts makes its rule what it must be')
  store.init({ windowMs: 2 * YEAR })
  is([1, 2].map(() => store.increment('long').totalHits), [1, 2], 'express: a window may be longer than a year')
  ok(soon(store.get('long').resetTime, 2 * YEAR), 'express: and is as long')
  is(thrown(() => { store.windowMs = 11 * YEAR; store.increment('b') }), `RangeError -: a count lives for ten years at most, not for ${11 * YEAR} ms`,
    'a window that no count can live is refused, and not shortened')
  limiter.ruleRemove('express-years.years')
  is(limiter.ruleSet('other', { algorithm: 'funnel', capacity: 1, refill: 1, periodMs: 1 }) >= 0 && store.get('a').totalHits, 2, 'express: other counts stay where they are')
  store.windowMs = 2 * YEAR
  is(store.increment('long').totalHits, 1, 'express: a rule that was removed is set again')
  store.resetKey('long')
  is(store.get('long'), undefined, 'express: resetKey() finds a count wherever it is')
  store.shutdown()

  const storage = new ShmlimitThrottlerStorage({ segment })
  const ask = () => storage.increment('long', HOUR, 1, 2 * YEAR, 'default')
  await ask()
  is([await ask(), await ask()].map(({ isBlocked, totalHits, timeToBlockExpire }) => [isBlocked, totalHits, Math.ceil(timeToBlockExpire / 3600)]),
    [[true, 2, 2 * YEAR / HOUR], [true, 2, 2 * YEAR / HOUR]], 'nestjs: a block may be longer than a year, and a window shorter')
  const other = new ShmlimitThrottlerStorage({ segment })
  is((await other.increment('long', HOUR, 1, 2 * YEAR, 'default')).isBlocked, true, 'nestjs: other workers know of it')
  is((await storage.increment('huge', HOUR, 2 ** 40, 0, 'x')).isBlocked, false, 'nestjs: a limit may be larger than a count')
  new Limiter(segment).count('nestjs-throttler', 'huge:x', 2 ** 26 - 2)
  is((await storage.increment('huge', HOUR, 2 ** 40, 0, 'x')).isBlocked, true, 'nestjs: beyond what is counted nothing is within it')
  const Store = shmlimitStore({ segment, rule: 'fastify' })
  const backoff = new Store({ exponentialBackoff: true })
  let got
  for (let i = 0; i < 5; i++) backoff.incr('years', (error, found) => { got = error ?? found }, YEAR, 2)
  is([got.current, Math.ceil(got.ttl / HOUR)], [5, 4 * YEAR / HOUR], 'fastify: exponentialBackoff may go beyond a year')
  storage.onApplicationShutdown()
  other.onApplicationShutdown()
}

// What a limiter needs of rate-limiter-flexible.
class Result {
  constructor (remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration) {
    Object.assign(this, { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration })
  }
}
class StoreAbstract {
  constructor (options) { Object.assign(this, options) }
}

async function flexible () {
  const load = Module._load
  Module._load = (name, ...rest) => name === 'rate-limiter-flexible'
    ? { RateLimiterRedis: class extends StoreAbstract {}, RateLimiterRes: Result }
    : load(name, ...rest)
  const { RateLimiterShmlimit } = require(`${library}/stores/rate-limiter-flexible.js`)
  const readme = fs.readFileSync(`${process.env.TMP}/readme.js`, 'utf8').replaceAll("'web'", `'${segment}'`)
  const made = []
  await new Function('app', 'rateLimit', 'fastify', 'ThrottlerModule', 'throttlers', 'require', `return (async () => { ${readme}; app.use(limiter) })()`)( // eslint-disable-line no-new-func
    { use: (it) => made.push(it) }, ({ store }) => store, { register: async (plugin, { store: Store }) => made.push(new Store({})) },
    { forRoot: ({ storage }) => made.push(storage) }, [], (name) => require(name.replace('shmlimit', `${library}/stores`)))
  is(made.map((it) => it.constructor.name), ['ShmlimitStore', 'ShmlimitStore', 'ShmlimitThrottlerStorage', 'RateLimiterShmlimit'], 'README: it makes the store of each front-end')
  Module._load = load
  const flexible = (keyPrefix, rule) => new RateLimiterShmlimit({ segment, points: 3, duration: 3600, keyPrefix, rule })
  is([thrown(() => flexible('a')), thrown(() => flexible('b')), thrown(() => flexible('a', 'own')), thrown(() => flexible('a'))],
    ['', '', '', `TypeError -: segment ${segment}: another store has the rule rate-limiter-flexible, and two would share their counts: give each a rule of its own`],
    'rate-limiter-flexible: two limiters without a rule need key prefixes of their own')
  const limiter = flexible()
  const upsert = async (points, ms = HOUR, force = false) => limiter._getRateLimiterRes('k', points, await limiter._upsert('k', points, ms, force))
  ok(limiter instanceof StoreAbstract, 'rate-limiter-flexible: the limiter is one of its stores')
  const first = await upsert(1)
  is([first.consumedPoints, first.remainingPoints, first.isFirstInDuration, first.msBeforeNext], [1, 2, true, HOUR], 'rate-limiter-flexible: the first points begin the duration')
  const more = await upsert(4)
  is([more.consumedPoints, more.remainingPoints, more.isFirstInDuration], [5, 0, false], 'rate-limiter-flexible: points add up')
  is((await upsert(-9)).consumedPoints, 0, 'rate-limiter-flexible: a reward takes no more than was consumed')
  is([(await upsert(7, 2 * HOUR, true)).consumedPoints, (await limiter._get('k')).count, (await limiter._get('k')).ms > HOUR], [7, 7, true],
    'rate-limiter-flexible: set and block replace points and duration')
  is([(await upsert(2, 0, true)).msBeforeNext, (await limiter._get('k')).ms, (await limiter._get('k')).count], [-1, -1, 2],
    'rate-limiter-flexible: a duration of 0 is for ever')
  is([await limiter._delete('k'), await limiter._delete('k'), await limiter._get('k')], [true, false, null], 'rate-limiter-flexible: delete says whether there was one')
  is(await upsert(0.5).catch((error) => error.message), 'Consuming decimal number of points is not supported by this package',
    'rate-limiter-flexible: half a point is refused')
  is([(await upsert('3')).consumedPoints], [3], 'rate-limiter-flexible: points may be a string')
  is([(await upsert(2 ** 26)).consumedPoints, (await upsert(1)).consumedPoints], [Number.MAX_SAFE_INTEGER, 4],
    'rate-limiter-flexible: more points than can be counted are within no limit')
  limiter.close()
}

async function main () {
  await express()
  fastify()
  await nest()
  await years()
  await flexible()
  done()
}

main()
