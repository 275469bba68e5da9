// pace: the laws of a pacer, and of what has the interface of p-throttle and limiter. Nothing depends on speed: what is awaited in
// vain is an hour away, and times are only looked at for whether a call came too early.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const fs = require('node:fs')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const library = process.env.SHMLIMIT
const { Limiter } = require(library)
const { Pacer, QueueFull } = require(`${library}/pace/pacer.js`)
const pThrottle = require(`${library}/pace/p-throttle.js`)
const { RateLimiter, TokenBucket } = require(`${library}/pace/limiter.js`)

const segment = process.env.SEGMENT
const HOUR = 3600e3
const SLOW = '1/h burst 1'
const make = (limit, rule, options) => new Pacer(limit, { segment, rule, slots: 256, ...options })

// What a child does: `node pace.cjs WHAT`. It says what it has to say when it is done.
const work = {
  // As many calls as it can begin in a row, of a limit with a wait.
  async waits () {
    const pacer = make('200/s burst 1', 'shared')
    for (let i = 0; i < 10; i++) await pacer.acquire()
    return Date.now()
  },
  async tries () {
    const pacer = make('10/day', 'tries')
    let n = 0
    for (let i = 0; i < 20; i++) n += pacer.tryAcquire()
    return n
  },
  async throttles () {
    const throttled = pThrottle({ segment, limit: 10, interval: 24 * HOUR, rule: 'throttles', maxQueue: 0 })(() => 1)
    const ran = await Promise.allSettled(Array.from({ length: 20 }, () => throttled()))
    return ran.filter(({ status }) => status === 'fulfilled').length
  },
  async removes () {
    const limiter = new RateLimiter({ segment, tokensPerInterval: 10, interval: 'day', rule: 'removes' })
    let n = 0
    for (let i = 0; i < 20; i++) n += limiter.tryRemoveTokens(1)
    return n
  },
  // Holds a place until it is killed.
  async holds () {
    await make('1 at once', 'held').acquire()
    setInterval(() => {}, HOUR)
    return 'held'
  },
  // No call waits, or one for which the process need not go on.
  async idle () {
    await make('10/day', 'idle').acquire()
    return 'idle'
  },
  async unref () {
    const pacer = make(SLOW, 'unref', { ref: false })
    await pacer.acquire()
    pacer.acquire()
    return 'waits'
  },
  async ref () {
    const pacer = make('20/s burst 1', 'ref')
    await pacer.acquire()
    pacer.acquire().then(() => process.send('had its turn'))
    return 'waits'
  }
}

if (process.send) {
  // A channel that is listened to would keep the process.
  work[process.argv[2]]().then((said) => process.send(said, () => process.channel?.unref()))
  return
}

const { ok, is, thrown, until, done } = require('./tap.cjs')

// What children say, and whether they end by themselves.
async function children (...whats) {
  return Promise.all(whats.map(async (what) => {
    const child = fork(__filename, [what])
    const said = []
    child.on('message', (message) => said.push(message))
    const [code] = await once(child, 'close')
    return [...said, code]
  }))
}

// Hours until all tokens are back: how many are owed and taken.
const owed = (pacer, options) => Math.ceil(pacer.peek(options).resetAfterMs / HOUR)
const rejected = (promise) => promise.then(() => 'resolved', (error) => error.message ?? error)

async function order () {
  const pacer = make('500/s burst 1', 'order')
  const begun = []
  const from = performance.now()
  await Promise.all([...'abcdefghijk'].map(async (name) => { await pacer.acquire(); begun.push(name) }))
  is(begun.join(''), 'abcdefghijk', 'calls have their turns in the order in which they came')
  ok(performance.now() - from >= 20, 'no call has its turn before its token is there')
  is(pacer.queued, 0, 'no call waits any more')
  const times = [make(SLOW, 'cost'), make(SLOW, 'cost')]
  is([thrown(() => times[0].tryAcquire({ cost: 2 })), times[0].tryAcquire({ cost: 2 }), times[0].tryAcquire(), times[1].tryAcquire()], ['', false, true, false],
    'tryAcquire() takes what is there now')
  is(await rejected(times[0].acquire({ cost: 2 ** 40 })), 'limit cost: a cost of 1099511627776 never fits', 'a cost that never fits is refused, and does not wait')
  const window = make({ algorithm: 'window', capacity: 3, periodMs: 50 }, 'window')
  const since = performance.now()
  for (let i = 0; i < 7; i++) await window.acquire()
  ok(performance.now() - since >= 100, 'in a window calls wait until it has room')
}

async function aborts () {
  const pacer = make(SLOW, 'aborts')
  await pacer.acquire()
  is(owed(pacer), 1, 'a call takes its token')
  const gone = [1, 2, 3].map(() => new AbortController())
  const waits = gone.map(({ signal }) => rejected(pacer.acquire({ signal })))
  is([pacer.queued, owed(pacer)], [3, 2], 'of the calls that wait the first one has a reservation')
  is(await rejected(pacer.acquire({ signal: AbortSignal.abort('before') })), 'before', 'a signal that has aborted is an error at once')
  gone[1].abort('second')
  is([await waits[1], pacer.queued, owed(pacer)], ['second', 2, 2], 'a call that is aborted in the middle of the line has reserved nothing')
  gone[0].abort('first')
  is([await waits[0], pacer.queued, owed(pacer)], ['first', 1, 2], 'the first one leaves its reservation to the next one')
  gone[2].abort('third')
  is([await waits[2], pacer.queued, owed(pacer)], ['third', 0, 2], 'the turn of the last one is given to no other process')
  const again = new AbortController()
  const next = rejected(pacer.acquire({ signal: again.signal }))
  is([pacer.queued, owed(pacer)], [1, 2], 'the next one here has it')
  again.abort('again')
  is(await next, 'again', 'it may be aborted, too')
  const dear = make('10/h burst 10', 'dear')
  const large = new AbortController()
  await dear.acquire({ cost: 10 })
  const first = rejected(dear.acquire({ cost: 10, signal: large.signal }))
  const second = dear.acquire({ cost: 1 })
  large.abort('large')
  is([await first, dear.queued], ['large', 1], 'a call of another cost moves up too')
  dear.close()
  is(await rejected(second), 'the pacer was closed', 'close() rejects calls that wait')
  is(await rejected(dear.acquire()), 'the pacer was closed', 'a pacer that was closed rejects later calls')
  const many = new AbortController()
  const warned = []
  process.on('warning', ({ name }) => warned.push(name))
  const crowd = Array.from({ length: 50 }, () => rejected(pacer.acquire({ signal: many.signal })))
  await new Promise(setImmediate)
  many.abort('all')
  is([new Set(await Promise.all(crowd)), pacer.queued, owed(pacer), warned], [new Set(['all']), 0, 2, []], 'one signal may end any number of calls')
}

async function bounds () {
  const pacer = make(SLOW, 'bounds', { maxQueue: 2 })
  const keys = ['a', 'b']
  for (const key of keys) await pacer.acquire({ key })
  const waits = keys.map((key) => rejected(pacer.acquire({ key })))
  const full = await pacer.acquire().then(() => pacer.acquire({ key: 'c' })).then(() => pacer.acquire({ key: 'c' })).catch((error) => error)
  ok(full instanceof QueueFull && full.code === 'EQUEUEFULL' && full.message === '2 calls wait already', 'the queue is bounded, over all keys')
  is([pacer.queued, owed(pacer, { key: 'c' })], [2, 1], 'a call that was refused has reserved nothing')
  pacer.close()
  await Promise.all(waits)
  is([thrown(() => make(SLOW)), thrown(() => make('often', 'r')).slice(0, 25), thrown(() => make(SLOW, 'r', { rate: 1 })), thrown(() => new Pacer(SLOW, { rule: 'r' })),
    thrown(() => make(SLOW, 'r', { maxQueue: -1 }))],
  ['TypeError -: a pacer needs { rule: NAME }, which all processes say that share its limit', "RangeError -: limit 'often'",
    'TypeError -: rate is not an option; there are rule, key, maxQueue, ref, segment, slots, mode, group, owner', 'TypeError -: a pacer needs { segment: NAME }',
    'RangeError -: maxQueue: -1 must be 0 or more'].map((text, i) => i === 1 ? text.slice(0, 25) : text), 'options that are wrong are refused')
  is([await rejected(make(SLOW, 'r').acquire({ cost: 0 })), await rejected(make('2 at once', 'p').acquire({ cost: 2 }))],
    ['cost: 0 must be a whole number, 1 or more', 'cost: a limit of how many at once has none'], 'costs that are wrong are refused')
}

async function wraps () {
  const pacer = make('2 at once', 'wraps')
  const free = () => pacer.peek().remaining
  let end
  const ended = new Promise((resolve) => { end = resolve })
  const seen = []
  const object = { add: pacer.wrap(async function (a, b) { seen.push(a); await ended; return [this === object, a + b] }) }
  const calls = [1, 2, 3].map((n) => object.add(n, 10))
  await until(() => seen.length === 2)
  is([seen, free(), pacer.queued, pacer.tryAcquire()], [[1, 2], 0, 1, false], 'a function that is wrapped holds a place while it runs')
  end()
  is([await Promise.all(calls), free()], [[[true, 11], [true, 12], [true, 13]], 2], 'the next one begins when it has ended')
  is([await rejected(pacer.wrap(() => { throw new Error('fails') })()), free()], ['fails', 2], 'a function that throws leaves its place')
  const costs = make('10/day', 'costs').wrap((n) => n, (n) => ({ cost: n }))
  is([await costs(3), make('10/day', 'costs').peek().remaining], [3, 7], 'what a call costs can depend on its arguments')
  const place = pacer.tryAcquire()
  is([free(), place.leave(), place.leave(), free()], [1, true, false, 2], 'a place is left once')
}

async function processes () {
  const from = Date.now()
  const [one, other] = await children('waits', 'waits')
  ok(Math.max(one[0], other[0]) - from >= 95, 'two processes have one line: twenty calls take nineteen refills')
  for (const [what, title] of [['tries', 'a pacer'], ['throttles', 'p-throttle'], ['removes', 'limiter']]) {
    const all = await children(what, what)
    is([all.reduce((sum, [n]) => sum + n, 0), all.map(([, code]) => code)], [10, [0, 0]], `${title}: two processes share one limit`)
  }
  const child = fork(__filename, ['holds'])
  await once(child, 'message')
  const pacer = make('1 at once', 'held')
  is(pacer.tryAcquire(), null, 'a place that another process holds is not free')
  const wait = pacer.acquire()
  child.kill('SIGKILL')
  const place = await wait
  ok(place.leave(), 'a call that waits has the place of a process that was killed')
  is(await children('idle', 'unref', 'ref'), [['idle', 0], ['waits', 0], ['waits', 'had its turn', 0]],
    'a pacer keeps a process only while a call waits, and not with ref: false')
}

async function throttles () {
  const options = { segment, limit: 2, interval: HOUR }
  const gone = new AbortController()
  const delayed = []
  const throttled = pThrottle({ ...options, rule: 'p', signal: gone.signal, onDelay: (...args) => delayed.push(args) })(function (a, b) { return [this, a, b] })
  const self = {}
  is([await throttled.call(self, 1, 2), await throttled(3)], [[self, 1, 2], [undefined, 3, undefined]].map(([it, ...args]) => [it ?? undefined, ...args]),
    'p-throttle: calls within the limit run at once')
  const late = rejected(throttled('x', 'y'))
  is([throttled.queueSize, delayed], [1, [['x', 'y']]], 'p-throttle: onDelay() is called for one that waits')
  throttled.isEnabled = false
  is((await throttled(5))[1], 5, 'p-throttle: where isEnabled is false, no call waits')
  throttled.isEnabled = true
  gone.abort('stop')
  is([await late, throttled.queueSize], ['stop', 0], 'p-throttle: a signal ends those that wait')
  const from = performance.now()
  for (const strict of [false, true]) {
    const fast = pThrottle({ ...options, interval: 50, strict, rule: `fast-${strict}` })(() => 1)
    await Promise.all([1, 2, 3, 4, 5].map(() => fast()))
  }
  ok(performance.now() - from >= 200, 'p-throttle: no more calls than the limit begin in an interval')
  const weighs = pThrottle({ ...options, rule: 'weighs', weight: (n) => n, maxQueue: 0 })((n) => n)
  is([await weighs(2), await weighs(0), await rejected(weighs(1)), await rejected(weighs(3)), await rejected(weighs(0.5))],
    [2, 0, '0 calls wait already', 'weight: 3 is above the limit of 2', 'weight: 0.5 must be a whole number, 0 or more'], 'p-throttle: a call counts for its weight')
  is([0, 1.5].map((limit) => thrown(() => pThrottle({ ...options, limit }))), ['TypeError -: limit: 0 must be a whole number, 1 or more', 'TypeError -: limit: 1.5 must be a whole number, 1 or more'],
    'p-throttle: a limit is whole')
  is(thrown(() => pThrottle({ ...options, interval: 0 })), 'TypeError -: interval: 0 must be milliseconds, above 0', 'p-throttle: an interval is above 0')
  is(await rejected(pThrottle({ ...options, rule: 'fails' })(() => { throw new Error('fails') })()), 'fails', 'p-throttle: what a call throws rejects its promise')
  is(pThrottle.default, pThrottle, 'p-throttle: it can be imported')
}

async function removes () {
  const limiter = new RateLimiter({ segment, tokensPerInterval: 5, interval: 'hour' })
  is([await limiter.removeTokens(2), await limiter.removeTokens(0), limiter.tryRemoveTokens(4), limiter.tryRemoveTokens(3), limiter.getTokensRemaining()],
    [3, 3, false, true, 0], 'limiter: removeTokens() resolves to what is left')
  is(await rejected(limiter.removeTokens(6)), '6 tokens: the limit is 5', 'limiter: more than the limit is refused')
  is([await rejected(limiter.removeTokens(-1)), thrown(() => limiter.tryRemoveTokens(0.5)), limiter.tryRemoveTokens(6)],
    ['-1 tokens: must be a whole number, 0 or more', 'RangeError -: 0.5 tokens: must be a whole number, 0 or more', false], 'limiter: tokens are whole')
  is(await rejected(limiter.removeTokens(1, { signal: AbortSignal.timeout(1) })), 'The operation was aborted due to timeout', 'limiter: a call that waits can be aborted')
  const eager = new RateLimiter({ segment, tokensPerInterval: 2, interval: HOUR, fireImmediately: true, rule: 'eager' })
  is([await eager.removeTokens(1), await eager.removeTokens(2)], [1, -1], 'limiter: with fireImmediately it resolves to -1')
  const fast = new RateLimiter({ segment, tokensPerInterval: 2, interval: 50, rule: 'fast' })
  const from = performance.now()
  for (let i = 0; i < 5; i++) await fast.removeTokens(1)
  ok(performance.now() - from >= 100, 'limiter: no more than the limit are removed in an interval')
  const bucket = new TokenBucket({ segment, bucketSize: 3, tokensPerInterval: 1, interval: HOUR })
  is([await bucket.removeTokens(3), bucket.tryRemoveTokens(1)], [0, false], 'limiter: a bucket')
  is([thrown(() => new TokenBucket({ segment, bucketSize: 1, tokensPerInterval: 1, interval: HOUR, parentBucket: bucket })).slice(0, 55),
    thrown(() => new RateLimiter({ segment, tokensPerInterval: 1, interval: 'junk' }))],
  ['TypeError -: parentBucket: buckets have no parents here', 'RangeError -: interval: junk must be milliseconds, or one of second, sec, minute, min, hour, hr, day'],
  'limiter: what cannot be is refused')
  bucket.close()
}

// A segment, and a rule, that others replace.
async function replaced () {
  const pacer = make('10000/day', 'replaced')
  await pacer.acquire()
  new Limiter(segment).ruleRemove('replaced')
  await pacer.acquire()
  is(pacer.peek().remaining, 9999, 'a rule that was removed is set again')
  Limiter.destroy(segment)
  Limiter.create(segment, { slots: 64 })
  is(await until(async () => { await pacer.acquire({ key: 'seen' }); return new Limiter(segment).reset() > 0 }), true, 'a segment that was replaced is opened again')
}

async function readme () {
  const text = fs.readFileSync(`${process.env.TMP}/readme.js`, 'utf8').replaceAll("'web'", `'${segment}'`)
  const urls = ['a', 'b', 'c']
  const called = []
  await new Function('require', 'fetch', 'urls', `return (async () => { ${text} })()`)( // eslint-disable-line no-new-func
    (name) => require(`${library}/pace/${name.replace('shmlimit/', '')}.js`), async (url) => called.push(url), urls)
  is(called, urls, 'README: its program calls each, in order')
}

async function main () {
  await order()
  await aborts()
  await bounds()
  await wraps()
  await processes()
  await throttles()
  await removes()
  await readme()
  await replaced()
  Limiter.destroy(segment)
  done()
}

main()
