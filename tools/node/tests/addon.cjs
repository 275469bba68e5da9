// addon: the laws of Limiter and Gate.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const fs = require('node:fs')
const { execFile, execFileSync } = require('node:child_process')
const { EventEmitter } = require('node:events')
const { Worker, isMainThread, workerData, parentPort } = require('node:worker_threads')
const { Limiter, Gate, Limit, ShmlimitError, SATURATE, RESTART, ruleParse, ruleText } = require(process.env.SHMLIMIT)

const segment = process.env.SEGMENT
const HOUR = 3600e3

// In a worker thread: take until it is denied.
if (!isMainThread) {
  const limiter = new Limiter(segment)
  let taken = 0
  while (limiter.take('threads', 'k')) taken++
  const gate = new Gate(`segment=${segment} rule=threads`)
  parentPort.postMessage([taken, gate.ask('another'), gate.answer.outcome, workerData])
  return
}

// In a process of its own: take of 10,000 customers, who have limits of their own. Prints how often each was allowed.
if (process.argv[2] === 'customers') {
  const limiter = new Limiter(segment)
  const id = limiter.ruleFind('plans')
  const allowed = Array.from({ length: 10000 }, (_, n) => [1, 2, 3, 4].filter(() => limiter.take(id, `c${n}`, 1, `${n % 9 + 1}/day burst ${n % 11 + 1}`)).length)
  process.stdout.write(JSON.stringify(allowed))
  return
}

const { ok, is, thrown, until, done } = require('./tap.cjs')

function wrongIds () {
  const limiter = Limiter.create(`${segment}.ids`, { slots: 64 })
  const id = limiter.ruleSet('r', { capacity: 5, refill: 1, periodMs: 24 * HOUR })
  limiter.take('r', 'k', 3)
  const calls = {
    take: (i) => limiter.take(i, 'k'),
    takeSome: (i) => limiter.takeSome(i, 'k', 1),
    peek: (i) => limiter.peek(i, 'k'),
    refund: (i) => limiter.refund(i, 'k'),
    charge: (i) => limiter.charge(i, 'k'),
    reserve: (i) => limiter.reserve(i, 'k'),
    pause: (i) => limiter.pause(i, 'k', 1),
    paused: (i) => limiter.paused(i, 'k'),
    count: (i) => limiter.count(i, 'k'),
    enter: (i) => limiter.enter(i, 'k'),
    'reset of a key': (i) => limiter.reset(i, 'k'),
    'reset of a rule': (i) => limiter.reset(i)
  }
  const wrong = [-1, -2, -3, id + 1, 63, 64, 4096, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 64, NaN, 0.5]
  const passed = Object.entries(calls).flatMap(([name, call]) => wrong.filter((i) => {
    try {
      call(i)
      return true
    } catch {
      return false
    }
  }).map((i) => [name, i]))
  limiter.peek('r', 'k')
  is([passed, limiter.result.remaining], [[], 2], "a number that is no rule's id is an error of each call, and resets nothing")
  limiter.close()
}

function floats () {
  const limiter = Limiter.create(`${segment}.floats`, { slots: 64 })
  const cases = fs.readFileSync(process.env.FLOAT_RATES, 'utf8').split('\n').filter((line) => /^[^#]/.test(line)).map((line) => line.split(' '))
  const set = (rate, per) => {
    try {
      const rule = { capacity: 15, refill: rate, periodMs: per * 1e3 }
      limiter.ruleSet('f', rule)
      const { refill, periodMs } = ruleParse(ruleText(rule))
      return [refill, periodMs / 1e3]
    } catch (error) {
      return /^refill: .*(the nearest that can be is \d|must be a finite number above 0)/.test(error.message) ? 'refused' : error.message
    }
  }
  const wrong = cases.filter(([rate, per, refill, period]) => String(set(Number(rate), Number(per))) !== (refill === 'refused' ? refill : `${refill},${period}`))
  is([cases.length > 10, wrong], [true, []], 'a rate that is not whole is what its shortest decimal says')
  is([NaN, Infinity, '1'].map((rate) => set(rate, 1)), ['refused', 'refused', 'refused'], 'a rate that is no number above 0 is refused')
  const throttled = (key, count, period) => [limiter.throttle(key, 15, count, period), limiter.result.remaining, limiter.result.resetAfterMs]
  is([throttled('a', 0.5, 1), throttled('b', 0.3, 1)], [throttled('c', 1, 2), throttled('d', 3, 10)], 'throttle takes a rate that is not whole, too')
  limiter.close()
}

function texts () {
  const limiter = Limiter.create(`${segment}.texts`, { slots: 64 })
  const funnel = (capacity, refill, periodMs) => ({ algorithm: 'funnel', mode: 'enforce', capacity, refill, periodMs })
  is(['5/minute', '10r/s burst 20', '1/1.5s', '2 per 2 years', '9/h window', '20 at once'].map((text) => ruleParse(text)), [
    funnel(5, 5, 60e3), funnel(20, 10, 1e3), funnel(1, 1, 1500), funnel(2, 2, 730 * 24 * HOUR),
    { ...funnel(9, 0, HOUR), algorithm: 'window' }, { ...funnel(20, 0, 60e3), algorithm: 'hold' }
  ], 'ruleParse() reads a text')
  for (const text of ['5/minute', '10r/s burst 20', '1/1.5s', '9/h strict', '9/h window', '20 at once', '20 at once at most 5m each', '0/s', 'block', 'unlimited', 'off']) {
    is(ruleParse(ruleText(ruleParse(text))), ruleParse(text), `what ruleText() prints reads the same: ${text}`)
  }
  limiter.ruleSet('calendar', ruleParse('3/day in UTC'))
  is(ruleText(ruleParse('3/day in UTC')), '3/day in UTC', 'a limit by the calendar is written as it is read')
  limiter.take('calendar', 'k', 3)
  ok(!limiter.take('calendar', 'k') && limiter.result.retryAfterMs <= 86400e3, 'such a limit ends at midnight')
  limiter.ruleRemove('calendar')
  ok(ruleParse('20 at once at most 5m').cutOff && !ruleParse('20 at once').cutOff, 'a limit can say that places are cut off')
  ok(thrown(() => ruleParse('5/minut')).includes('5/minute'), 'an error has the nearest limit')
  is([() => ruleParse('5/s\0'), () => ruleParse(5), () => ruleParse('x'.repeat(300)), () => ruleParse('2 at once', 'window'), () => ruleText({ mode: 'of' }),
    () => ruleText({ algorithm: 'gcra' })].map((call) => thrown(call)?.split(' ')[0]), ['RangeError', 'RangeError', 'RangeError', 'RangeError', 'RangeError', 'ShmlimitError'],
  'what is no limit is refused')

  const passes = () => Array.from({ length: 9 }, () => limiter.take('start', 'k')).filter(Boolean).length
  const started = (text) => { limiter.ruleEnsure('start', ruleParse(text)); return passes() }
  is(['0/s', 'block', 'unlimited', 'off', '3/day'].map(started), [0, 0, 9, 9, 3], '0 denies always, unlimited never, and a program that starts changes them')
  const asked = (text) => { const gate = new Gate(`segment=${limiter.name} create=yes rule=gate rate=${text}`); return Array.from({ length: 9 }, () => gate.ask('k')).filter(Boolean).length }
  is(['0/s', 'block', 'unlimited', 'off', '3/day'].map(asked), [0, 0, 9, 9, 3], 'a gate and the middleware read them likewise')
  limiter.ruleSet('start', { capacity: 4, refill: 1, periodMs: 24 * HOUR })
  limiter.reset('start')
  is(started('3/day'), 4, 'what an operator has changed since stays')
  limiter.ruleEnsure('start', { algorithm: 'counter', capacity: 9, periodMs: HOUR })
  is([limiter.count('start', 'k'), limiter.counted.count], [true, 1], 'a program that starts changes the algorithm, too')
  Limiter.destroy(limiter.name)
}

function limiters () {
  const limiter = Limiter.create(segment, { slots: 64, mode: 0o640 })
  is(fs.statSync(`${process.env.SHM}${segment}`).mode & 0o777, 0o640, 'a segment is created with its options')
  is(thrown(() => Limiter.create(segment)), `ShmlimitError EEXIST: EEXIST: a segment or file of this name exists, create '${segment}'`,
    'a segment that exists is not created again')
  const id = limiter.ruleSet('login', { capacity: 3, refill: 1, periodMs: HOUR, maxWaitMs: 10 * HOUR })
  is([id, limiter.ruleFind('login')], [0, 0], 'a rule is set, and found by its name')

  is([1, 2, 3, 4].map(() => limiter.take('login', 'user:42')), [true, true, true, false], 'take() allows the capacity and no more')
  const { limit, remaining, waitMs, retryAfterMs, resetAfterMs } = limiter.result
  is([limit, remaining, waitMs], [3, 0, 0], 'the result has what is left')
  ok(retryAfterMs > HOUR / 2 && retryAfterMs <= HOUR && resetAfterMs > 2.5 * HOUR && resetAfterMs <= 3 * HOUR,
    'the result has the times in milliseconds')
  is([limiter.take(id, 'user:43', 4), limiter.result.retryAfterMs], [false, Infinity], 'what never fits is to be retried after Infinity')
  is([2, 2, 2].map((most) => limiter.takeSome('login', 'batch', most)), [2, 1, 0], 'takeSome() takes as many as fit, and says how many')
  ok(limiter.result.retryAfterMs > HOUR / 2, 'takeSome() has the other figures in the result')
  is([limiter.peek(id, 'user:43'), limiter.result.remaining], [true, 3], 'peek() takes nothing')
  is([limiter.reserve(id, 'user:42'), limiter.result.waitMs > HOUR / 2], [true, true], 'reserve() says how long to wait')
  is(limiter.reserve(id, 'user:42', 1, 1), false, 'reserve() denies a wait that is longer than the caller would wait')
  limiter.refund(id, 'user:42', 2)
  is([limiter.peek(id, 'user:42'), limiter.result.remaining], [true, 1], 'refund() gives tokens back, first to the debt')
  limiter.charge(id, 'user:42')
  is(limiter.peek(id, 'user:42'), false, 'charge() takes what is there')
  is([limiter.reset('login', 'user:42'), limiter.reset('login', 'user:42')], [1, 0], 'reset() says how many keys there were')
  is(limiter.take(id, 'user:42', 3), true, 'a key that was reset has all its tokens')

  is([limiter.take(id, Buffer.from('b\xfc', 'utf8'), 3), limiter.take(id, 'b\xfc')], [true, false], 'a string is a key in UTF-8')
  is([limiter.take(id, '\0'), limiter.take(id, 'k'.repeat(1024))], [true, true], 'a key may have NULs, and 1024 bytes')
  is(limiter.throttle('t', 2, 1, 3600) && limiter.throttle('t', 2, 1, 3600), true, 'throttle() has its limits with it')
  is([limiter.throttle('t', 2, 1, 3600), limiter.result.limit, limiter.result.remaining], [false, 2, 0], 'throttle() denies')
  ok(limiter.result.retryAfterMs > HOUR / 2 && limiter.result.retryAfterMs <= HOUR, 'throttle() says when to retry')
  const window = limiter.ruleSet('window', { algorithm: 'window', capacity: 2, periodMs: HOUR })
  is([limiter.take(window, 'w', 2), limiter.take('window', 'w')], [true, false], 'a rule may have another algorithm')
  limiter.ruleRemove('window')
  limiter.ruleSet('bucket', { algorithm: 'token-bucket', capacity: 1, refill: 1, periodMs: HOUR })
  is([limiter.take('bucket', 'b'), limiter.take('bucket', 'b')], [true, false], 'a funnel is also called a token bucket')
  limiter.ruleRemove('bucket')
  is(thrown(() => limiter.take('window', 'w')), "ShmlimitError ESRCH: ESRCH: no such rule, take 'window'", 'a rule that was removed is missing')
  return limiter
}

function counts (limiter) {
  const counter = limiter.ruleSet('count', { algorithm: 'counter', capacity: 2 ** 26 - 1 })
  const counted = () => [limiter.counted.count, limiter.counted.applied]
  is([limiter.count(counter, 'c', 5, HOUR), ...counted()], [true, 5, 5], 'count() adds')
  ok(limiter.counted.ttlMs >= HOUR && limiter.counted.ttlMs < HOUR + 2, 'the first addition begins the time to live')
  is([limiter.count(counter, 'c', 6, HOUR, 10), ...counted()], [false, 5, 0], 'count() denies what is above the bound')
  is([limiter.count(counter, 'c', 6, HOUR, 10, SATURATE), ...counted()], [true, 10, 5], 'SATURATE adds what fits')
  is([limiter.count(counter, 'c', -4), ...counted()], [true, 6, -4], 'count() takes away')
  is([limiter.count(counter, 'c', 0, 2 * HOUR, Infinity, RESTART), limiter.counted.ttlMs > HOUR + 2], [true, true],
    'RESTART begins the time to live again')
  is([limiter.count('count', 'none', 0), ...counted(), limiter.counted.ttlMs], [true, 0, 0, 0], 'a key without a count counts 0')
  is(thrown(() => limiter.count('login', 'c')).slice(0, 24), 'ShmlimitError EOPNOTSUPP', 'a rule of another algorithm counts nothing')
}

function holds (limiter) {
  limiter.ruleSet('hold', { algorithm: 'hold', capacity: 2, periodMs: HOUR })
  const [first, second, third] = [1, 2, 3].map(() => limiter.enter('hold', 'h'))
  is([first !== null, second !== null, third, limiter.result.retryAfterMs > HOUR / 2], [true, true, null, true], 'enter() gives as many places as there are')
  is([first.renew(), first.leave(), first.leave(), first.renew()], [true, true, false, false], 'a place is renewed, and left once')
  is([limiter.enter('hold', 'h') !== null, limiter.enter('hold', 'h')], [true, null], 'another may enter then')
  const found = ruleParse('auto 1 to 20 at once by aimd')
  is([found.law, found.least, ruleText(found)], ['aimd', 1, 'auto 1 to 20 at once by aimd for 1m'], 'a limit that finds its number is read, and written')
  limiter.ruleSet('auto', found)
  // How many places there are, after work for so long, or until they are fewer than 20.
  const work = (ms, how) => {
    const end = performance.now() + ms
    let number
    while ((limiter.peek('auto', 'k'), number = limiter.result.limit) === 20 && performance.now() < end) limiter.enter('auto', 'k').leave(how)
    return number
  }
  is([work(700), work(700, 'untimed'), work(60e3, 'dropped') < 20], [20, 20, true], 'a place that is left says whether its work was dropped')
  is(thrown(() => limiter.enter('auto', 'k').leave('late')).slice(0, 10), 'RangeError', 'how work does not end is refused')
  limiter.reset('hold', 'h')
  is(second.leave(), false, 'a place that was reset is not held any more')
  const by = (limit) => limiter.enter('hold', 'bound', limit)
  const bound = [by('1 at once'), by('1 at once'), by(new Limit('9 at once')), by('9 at once')]
  is([bound.map((place) => place !== null), limiter.result.limit], [[true, false, true, false], 2], 'enter() by a limit has that many places, and at most the rule\'s')
  is([bound[0].leave(), by('2 at once') !== null, thrown(() => by('5/minute')).slice(0, 24), thrown(() => by('2 at once for 5m')).slice(0, 10)],
    [true, true, 'ShmlimitError EOPNOTSUPP', 'RangeError'], 'a limit of places is no rate')
  is([thrown(() => limiter.enter('login', 'h')), thrown(() => limiter.enter('hold', 3))].map((text) => text.slice(0, 24)),
    ['ShmlimitError EOPNOTSUPP', 'TypeError -: enter: the '], 'enter() throws for a rule of another algorithm, and for a key that is none')
}

async function callLimits () {
  const name = `${segment}.plans`
  const limiter = Limiter.create(name, { slots: 32768 })
  limiter.ruleSet('plans', { algorithm: 'gcra' })
  limiter.ruleSet('funnel', { capacity: 3, refill: 1, periodMs: HOUR })
  for (const [key, limit] of [['text', '3/day'], ['read', new Limit('3/day')]]) {
    is([1, 2, 3, 4].map(() => [limiter.take('plans', key, 1, limit), limiter.result.limit, limiter.result.remaining]),
      [[true, 3, 2], [true, 3, 1], [true, 3, 0], [false, 3, 0]], `take() by a limit of its own: ${key}`)
  }
  is(['block', 'unlimited', '9/day'].map((limit) => limiter.take('plans', 'words', 1, limit)), [false, true, true], 'take() knows block and unlimited')
  is([limiter.peek('plans', 'text', 1, '9/day burst 9'), limiter.result.remaining], [false, 0], 'peek() of a key with another limit: what was spent is spent')
  limiter.refund('plans', 'text', 1, '3/day')
  is([limiter.result.remaining, limiter.peek('plans', 'text', 1, '3/day')], [1, true], 'refund() by a limit')
  is([5, 5].map((most) => limiter.takeSome('plans', 'batch', most, '7/day')), [5, 2], 'takeSome() takes a limit, too')
  limiter.charge('plans', 'text', 2, '3/day', 24 * HOUR)
  is(limiter.reserve('plans', 'text', 1, HOUR, '3/day'), false, 'charge() by a limit goes into debt as far as it is told')
  is([limiter.reserve('plans', 'text', 1, Infinity, '3/day'), limiter.result.waitMs > 15 * HOUR], [true, true], 'reserve() by a limit says how long to wait')
  for (const text of ['5/fortnight', '20 at once for 5m', '5/s\0', '1/y burst 3', 'x'.repeat(300)]) {
    ok(/^RangeError -: limit '/.test(thrown(() => limiter.take('plans', 'k', 1, text))), `a limit that cannot be read is a RangeError: ${JSON.stringify(text.slice(0, 20))}`)
  }
  for (const limit of [5, null, {}, Buffer.alloc(40)]) ok(/^TypeError -: a limit must be/.test(thrown(() => limiter.take('plans', 'k', 1, limit))), `a limit must be a string or a Limit, not ${typeof limit}`)
  is(thrown(() => limiter.take('funnel', 'k', 1, '5/s')).slice(0, 24), 'ShmlimitError EOPNOTSUPP', 'a rule of another algorithm takes no limits of calls')
  is(thrown(() => limiter.take('plans', 'k')).slice(0, 18), 'ShmlimitError EDOM', 'a rule without a limit of its own needs one')

  const customers = await Promise.all([1, 2, 3, 4].map(() => new Promise((resolve, reject) => {
    execFile(process.execPath, [__filename, 'customers'], { env: { ...process.env, SEGMENT: name } }, (error, out) => error ? reject(error) : resolve(JSON.parse(out)))
  })))
  is(Array.from({ length: 10000 }, (_, n) => n).filter((n) => customers.reduce((sum, one) => sum + one[n], 0) !== Math.min(n % 11 + 1, 16)), [],
    '10,000 customers with limits of their own are exact over four processes')

  const reports = []
  const gate = new Gate(`segment=${name} create=yes rule=gate algorithm=gcra rate_error=1/day rule=funnel`, { report: (bad, text) => reports.push(text) })
  const ask = (key, limit, n) => Array.from({ length: n }, () => gate.ask([{ key, limit }, null])).filter(Boolean).length
  is([ask('a', '3/day', 5), ask('b', 'unlimited', 5), ask('c', 'block', 5), ask('d', null, 5), ask('e', undefined, 5), ask('f', 'many', 5)], [3, 5, 0, 1, 1, 1],
    'a request of a gate may bring its limit')
  is([gate.ask([{ key: Buffer.from('g'), limit: '7/hour' }, 'x']), gate.answer.fields[0]], [true, ['RateLimit-Policy', '"gate";q=7;w=3600']], 'its field has that limit')
  is([gate.ask([{ key: null, limit: '7/hour' }, null]), gate.answer.outcome], [true, 'unlimited'], 'a key of null is not limited')
  is((await gate.askAsync([{ key: 'h', limit: '2/day' }, null])).remaining, 1, 'askAsync() takes limits of requests, too')
  await until(() => reports.length > 0)
  ok(/rule gate: the rate "many" of a request: .*: rate_error= decides/.test(reports[0]), 'what cannot be read is reported')
  is(thrown(() => gate.ask([{ key: 'k', limit: 5 }, null])), 'TypeError -: ask: a limit must be a string', 'a limit of a request must be a string')
  is(thrown(() => gate.ask([{ limit: '5/s' }, null])).slice(0, 9), 'TypeError', 'a limit without a key is an error')
  gate.close()
  limiter.close()
  Limiter.destroy(name)
}

function errors (limiter) {
  const error = (() => { try { return new Limiter(`${segment}.none`) } catch (e) { return e } })()
  is([error instanceof ShmlimitError, error.code, error.errno, error.syscall], [true, 'ENOENT', -2, 'open'],
    'an error has the members that those of Node have')
  for (const [run, want, title] of [
    [() => new Limiter('a/b'), 'ShmlimitError EILSEQ', 'a name that no segment can have'],
    [() => new Limiter('a\0b'), 'ShmlimitError EILSEQ', 'a name with a NUL'],
    [() => new Limiter(7), 'ShmlimitError EINVAL', 'a name that is no string'],
    [() => limiter.take('r'.repeat(64), 'k'), 'ShmlimitError ENAMETOOLONG', 'a name that is too long'],
    [() => limiter.take('login', ''), 'ShmlimitError EMSGSIZE', 'an empty key'],
    [() => limiter.take('login', 'k'.repeat(1025)), 'ShmlimitError EMSGSIZE', 'a key that is too long'],
    [() => limiter.take('login', '\u20ac'.repeat(1000)), 'ShmlimitError EMSGSIZE', 'a key that is too long in UTF-8'],
    [() => limiter.take('login', new Uint8Array(0)), 'ShmlimitError EMSGSIZE', 'a key of no bytes'],
    [() => limiter.take('login'), 'TypeError -', 'a key that is missing'],
    [() => limiter.take('login', 42), 'TypeError -', 'a key that is a number'],
    [() => limiter.take(1.5, 'k'), 'TypeError -', 'a rule that is no name and no id'],
    [() => limiter.take(63, 'k'), 'ShmlimitError ESRCH', 'an id that no rule has'],
    [() => limiter.take('login', 'k', -1), 'RangeError -', 'a cost below 0'],
    [() => limiter.take('login', 'k', NaN), 'RangeError -', 'a cost that is no number'],
    [() => limiter.take('login', 'k', 2 ** 60), 'RangeError -', 'a cost that a number cannot hold exactly'],
    [() => limiter.count('count', 'k', 0.5), 'ShmlimitError EINVAL', 'half a count'],
    [() => limiter.count('count', 'k', 1, 1e15), 'ShmlimitError ERANGE', 'a time to live of 30,000 years'],
    [() => limiter.ruleSet('x', { capacity: 0, refill: 1, periodMs: 1 }), 'ShmlimitError EDOM', 'a rule without a capacity'],
    [() => limiter.ruleSet('x', { capacity: 1, refill: 1, period: 1 }), 'TypeError -', 'an option that there is not'],
    [() => limiter.ruleSet('x', { algorithm: 'lease', capacity: 4, refill: 1, periodMs: 1, credit: 5 }), 'ShmlimitError EINVAL', 'a credit above the capacity'],
    [() => limiter.ruleSet('x', { algorithm: 'leaky' }), 'RangeError -', 'an algorithm that there is not'],
    [() => new Limiter(segment, { readOnly: true }).take('login', 'k'), 'ShmlimitError EROFS', 'a take through a handle that only reads'],
    [() => new Gate('segment=x'), '', 'a gate without limits is no error'],
    [() => new Gate('segment=x rule=r cots=2'), 'Error EINVAL', 'a spec with a wrong word'],
    [() => new Gate(), 'TypeError EINVAL', 'a spec that is missing'],
    [() => new Gate('segment=x rule=r', { report: 1 }), 'Error EINVAL', 'a report that is no function'],
    [() => new Gate(`segment=${segment} rule=login`).ask(['a', 'b']), 'RangeError -', 'more keys than limits'],
    [() => new Gate(`segment=${segment} rule=login`).ask(1), 'TypeError -', 'a gate\'s key that is a number'],
    [() => new Gate(`segment=${segment} rule=login`).ask('a', -1), 'RangeError -', 'a gate\'s cost below 0'],
    [() => new Gate(`segment=${segment} rule=login`).ask({ length: 2 ** 31 }), 'TypeError -', 'a gate\'s key that is an object']
  ]) {
    is(thrown(run).replace(/:.*/s, ''), want, `${want === '' ? 'nothing' : want.replace(' -', '')} is thrown for this: ${title}`)
  }
  const again = new Limiter(segment)
  again.close()
  again.close()
  is(thrown(() => again.take('login', 'k')), `ShmlimitError EBADF: EBADF: it is closed, take '${segment}'`, 'a limiter that is closed answers nothing')
}

async function gates (limiter) {
  limiter.ruleSet('page', { capacity: 2, refill: 1, periodMs: HOUR })
  limiter.ruleSet('site', { capacity: 5, refill: 1, periodMs: HOUR })
  const gate = new Gate(`segment=${segment} rule=page prefix=32,64 rule=site`)
  const { answer } = gate
  is([gate.limits, gate.mayWait], [2, false], 'a gate knows its limits')
  is([gate.ask(['192.0.2.1', 'all']), answer.outcome, answer.status, answer.remaining, answer.deniedBy], [true, 'passed', 0, 1, -1], 'a request passes')
  is(answer.fields.map(([name, value]) => `${name}: ${value}`), ['RateLimit-Policy: "page";q=2;w=7200', 'RateLimit: "page";r=1;t=3600',
    'RateLimit-Policy: "site";q=5;w=18000', 'RateLimit: "site";r=4;t=3600'], 'the answer has the header fields')
  is([gate.ask(['::ffff:192.0.2.1', 'all']), gate.ask(['192.0.2.1', 'all'])], [true, false], 'a key is the net of an address')
  is([answer.outcome, answer.status, answer.deniedBy, answer.error], ['rejected', 429, 0, null], 'a request is rejected')
  ok(answer.retryAfterMs > HOUR / 2 && answer.retryAfterMs <= HOUR, 'the answer says when to retry')
  is([answer.fields.at(-1)[0], Math.ceil(answer.retryAfterMs / 1000)], ['Retry-After', Number(answer.fields.at(-1)[1])], 'and so does a header field')
  is([limiter.peek('site', 'all'), limiter.result.remaining], [true, 3], 'what the other limit would have taken is not taken')
  is([gate.ask([null, 'all']), gate.ask([undefined, 'all'], [7, 2])], [true, true], 'a limit without a key is not asked')
  is([gate.ask([null, 'all']), answer.deniedBy], [false, 1], 'a cost may come with the request')
  is([gate.ask([null, null]), answer.outcome, answer.remaining], [true, 'unlimited', Infinity], 'a request without keys is not limited')

  const long = 'k'.repeat(5000)
  is([gate.ask([long, long]), gate.ask([`${long}1`, null]), gate.ask([long, Buffer.from(long)]), gate.ask([long, null])],
    [true, true, true, false], 'a key may have any number of bytes')
  const many = new Gate(`segment=${segment} ${'rule=site '.repeat(17)}`)
  is([many.ask([...new Array(16).fill('m'), null], 1), thrown(() => many.ask(new Array(17).fill('m'))).slice(0, 19)], [false, 'ShmlimitError E2BIG'],
    'a request asks 16 limits at most')

  for (const keys of [[], ['k'], ['k', 'k', 'k'], 'k', null, undefined]) {
    const why = 'RangeError -: ask: ' + [keys].flat().length + ' keys, but the spec has 2 limits'
    is(thrown(() => gate.ask(keys)).slice(0, why.length), why, 'a list of keys that is too short or too long is refused, and no limit is left out')
    is(await gate.askAsync(keys).catch((error) => error.name), 'RangeError', 'askAsync() refuses it, too')
  }
  is(thrown(() => gate.ask(['k', 'k'], [1])).slice(0, 24), 'RangeError -: ask: 1 cos', 'a list of costs that is too short is refused')
  const first = await gate.askAsync(['203.0.113.9', 'another'])
  is([first.allowed, first.outcome, first.status, first.remaining, first.fields.length], [true, 'passed', 0, 1, 4], 'askAsync() answers as ask() does')
  const waiting = [1, 2, 3].map(() => gate.askAsync([Buffer.from('203.0.113.9'), null]))
  gate.close()
  is((await Promise.all(waiting)).filter((a) => a.allowed).length, 1, 'a gate that is closed finishes what it was asked')
  is(thrown(() => gate.ask('k')), "ShmlimitError EBADF: EBADF: it is closed, ask", 'and answers nothing more')
  is(await gate.askAsync('k').catch((error) => error.code), 'EBADF', 'and nothing in another thread')
}

async function outages () {
  const reports = []
  const report = (bad, text) => reports.push([bad, text])
  const gate = new Gate(`segment=${segment}.late fail=open rule=r`, { report })
  is([gate.ask('k'), gate.answer.outcome, gate.answer.error.code], [true, 'failed', 'ENOENT'], 'fail=open lets a request pass where the segment is missing')
  is(thrown(() => gate.attach()).slice(0, 20), 'ShmlimitError ENOENT', 'attach() throws what is wrong')
  await until(() => reports.length > 0)
  is([reports[0][0], reports[0][1].includes(`${segment}.late`)], [true, true], 'a problem is reported')
  const maker = new Gate(`segment=${segment}.late create=yes rule=r rate="1/hour"`)
  maker.attach()
  await until(() => { gate.ask('k'); return gate.answer.outcome !== 'failed' })
  await until(() => reports.length > 1)
  is(reports.at(-1)[0], false, 'and its end is reported')
  is([maker.ask('k'), gate.ask('another')], [false, true], 'a gate finds the segment that another has created')
}

async function threads () {
  new Limiter(segment).ruleSet('threads', { capacity: 5000, refill: 1, periodMs: HOUR })
  const answers = await Promise.all([1, 2, 3].map((n) => new Promise((resolve, reject) => {
    new Worker(__filename, { workerData: n }).on('message', resolve).on('error', reject)
  })))
  is(answers.reduce((sum, [taken]) => sum + taken, 0), 5000, 'worker threads share the limit')
  is(answers.map((answer) => answer.slice(1)), [[true, 'passed', 1], [true, 'passed', 2], [true, 'passed', 3]], 'each has gates of its own')
}

function package_ () {
  const library = process.env.SHMLIMIT
  const script = `import { Limiter, Gate, SATURATE } from '${library}/index.js'; console.log(typeof Limiter, typeof Gate, SATURATE)`
  is(execFileSync(process.execPath, ['--input-type=module', '-e', script]).toString(), 'function function 65536\n', 'a module imports the names')
  const types = fs.readFileSync(`${library}/index.d.ts`, 'utf8')
  const missing = []
  for (const kind of [Limiter, Gate]) {
    for (const name of [...Object.getOwnPropertyNames(kind), ...Object.getOwnPropertyNames(kind.prototype)]) {
      if (!['length', 'name', 'prototype'].includes(name) && !new RegExp(`\\b${name}\\b`).test(types)) missing.push(`${kind.name}.${name}`)
    }
  }
  is(missing, [], 'the types have each method of the classes')

  // As `npm run prebuild` lays it.
  const prebuilt = `${process.env.TMP}/prebuilt`
  fs.cpSync(library, prebuilt, { recursive: true })
  fs.mkdirSync(`${prebuilt}/prebuilds`)
  fs.renameSync(`${prebuilt}/build/Release`, `${prebuilt}/prebuilds/linux-${process.arch}`)
  is(execFileSync(process.execPath, ['-p', `typeof require('${prebuilt}').Limiter`]).toString(), 'function\n', 'a prebuilt addon is found')
}

// What README.md and shmlimit_gate(3) tell to write.
function readme () {
  const program = (text) => fs.readFileSync(`${process.env.TMP}/${text}.js`, 'utf8').replace(/\bweb\b/, segment + (text.includes('=') ? `.${text}` : ''))
  const script = program("new Limiter('web')").replace("'shmlimit'", JSON.stringify(process.env.SHMLIMIT))
  new Limiter(segment).reset('login')
  is([1, 2, 3, 4].map(() => execFileSync(process.execPath, ['-e', script]).toString().replace(/later 3[0-9.]*/, 'later')),
    ['welcome 2\n', 'welcome 1\n', 'welcome 0\n', 'later\n'], 'README: its program limits')

  // What passes of twenty requests of a client, which take less than a day, by the middleware that the program gives to its application.
  const { limit } = require(`${process.env.SHMLIMIT}/middleware`)
  const passes = (text, given) => {
    let middleware
    const app = { use: (it) => { middleware = it }, get () {}, listen () {} }
    const find = (name) => name === 'express' ? () => app : require(name.replace('shmlimit', process.env.SHMLIMIT))
    const names = { app, require: find, limit, ...given }
    const taken = new Function(...Object.keys(names), `{ ${program(text).replace('/minute', '/day')}; return typeof allowed === 'undefined' ? 0 : allowed }`)(...Object.values(names)) // eslint-disable-line no-new-func
    const answer = () => Object.assign(new EventEmitter(), { locals: { tokens: 20000 }, headersSent: false, setHeader () {}, end () { this.refused = true } })
    let passed = 0
    for (let i = 0; i < 20; i++) {
      const res = answer()
      middleware({ ip: '203.0.113.9', socket: {}, headers: {}, user: { name: 'user:42', plan: { rate: '3/day' } } }, res, () => passed++)
      res.emit('close')
    }
    return [passed, taken]
  }
  is(passes("require('express')", {}), [15, 0], 'README: its server lets 15 requests of a client through at once')
  is(passes('rule=plans', { limiter: { take: (...given) => given }, user: { name: 'user:42', plan: { rate: '3/day' } } }),
    [3, ['plans', 'user:42', 1, '3/day']], "README: a customer's plan is its limit")
  is(passes('rule=tokens', {}), [1, 0], 'README: what a request has used is charged')
  const gate = new Gate(fs.readFileSync(`${process.env.TMP}/spec`, 'utf8').replace('segment=web', `segment=${segment}.spec`), { report () {} })
  is([gate.limits, gate.ask(['203.0.113.9', 'all'])], [2, true], 'shmlimit_gate(3): its spec has two limits')
}

async function main () {
  wrongIds()
  floats()
  texts()
  const limiter = limiters()
  counts(limiter)
  holds(limiter)
  errors(limiter)
  await callLimits()
  await gates(limiter)
  await outages()
  await threads()
  package_()
  readme()
  is(limiter.gone(), false, 'a segment that is there is not gone')
  Limiter.destroy(segment)
  is(limiter.gone(), true, 'a segment that was destroyed is gone')
  done()
}

main()
