// shmlimit: one rate limit for all processes of a host. What is exported is described in index.d.ts.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const fs = require('node:fs')
const os = require('node:os')
const { setTimeout: sleep } = require('node:timers/promises')
// Built here, or built before for this kind of machine.
const built = `${__dirname}/build/Release/shmlimit.node`
const native = require(fs.existsSync(built) ? built : `${__dirname}/prebuilds/linux-${process.arch}/shmlimit.node`)

const { numbers } = native
// Where the addon puts the figures of an answer: enum number in src/addon.h.
const LIMIT = 0, REMAINING = 1, WAIT_MS = 2, RETRY_AFTER_MS = 3, RESET_AFTER_MS = 4, COUNT = 5, APPLIED = 6, TTL_MS = 7, GRANTED = 8
const OUTCOME = 9, STATUS = 10, FAILURE = 11, DENIED_BY = 12, GATE_REMAINING = 13, GATE_RETRY_AFTER_MS = 14

const SATURATE = 0x10000
const RESTART = 0x20000
const READ_ONLY = 0x100
const HOLD_SIZE = 24 // of struct shmlimit_place
const ALGORITHMS = ['funnel', 'warmup', 'window', 'lease', 'counter', 'hold', 'gcra']
const LIMIT_SIZE = 40 // of struct shmlimit_limit
const LIMITS_KEPT = 4096
const LIMIT_WAIT_MS = 366 * 86400e3 // longest wait by a limit
const MODES = ['enforce', 'dry_run', 'off', 'block']
const ON_FULL = ['evict', 'allow', 'deny']
const CLOCKS = ['precise', 'coarse']
const ON_FAILURE = ['deny', 'allow', 'local', 'error'] // enum shmlimit_global_on_failure
const OUTCOMES = ['unlimited', 'passed', 'rejected', 'rejected-dry-run', 'failed', 'delayed', 'delayed-dry-run']

// Errors of Linux that Node has no name for.
const CODES = { 54: 'EXFULL', 79: 'ELIBACC', 80: 'ELIBBAD', 112: 'EHOSTDOWN', 117: 'EUCLEAN', 124: 'EMEDIUMTYPE' }
for (const [code, errno] of Object.entries(os.constants.errno)) CODES[errno] = code
CODES[os.constants.errno.EAGAIN] = 'EAGAIN'
CODES[os.constants.errno.EOPNOTSUPP] = 'EOPNOTSUPP'

class ShmlimitError extends Error {
  constructor (errno, syscall, subject) {
    const code = CODES[-errno] ?? `E${-errno}`
    const text = errno === -os.constants.errno.EBADF ? 'it is closed' : native.strerror(errno)
    super(`${code}: ${text}, ${syscall}${subject === undefined ? '' : ` '${subject}'`}`)
    this.errno = errno
    this.code = code
    this.syscall = syscall
  }
}
Object.defineProperty(ShmlimitError.prototype, 'name', { value: 'ShmlimitError' })

function check (answer, syscall, subject) {
  if (answer < 0) throw new ShmlimitError(answer, syscall, subject)
  return answer
}

const isName = (value) => typeof value === 'string'
const isWhole = (value) => Number.isInteger(value) && value >= 0 && value <= 2 ** 53

// Arguments are looked at once more when a call has failed: the fast path does not check twice.
function failed (limiter, answer, call, rule, key, ...whole) {
  if (answer !== -os.constants.errno.EBADF) {
    if (rule !== undefined && !isName(rule) && !isWhole(rule)) throw new TypeError(`${call}: the rule must be a name or an id`)
    if (!isName(key) && !(key instanceof Uint8Array)) throw new TypeError(`${call}: the key must be a string or a Uint8Array`)
    if (!whole.every(isWhole)) throw new RangeError(`${call}: ${whole.find((n) => !isWhole(n))} must be a whole number from 0 to 2^53`)
  }
  throw new ShmlimitError(answer, call, answer === -os.constants.errno.ESRCH ? rule : limiter.name)
}

// A rate is whole, or what its shortest decimal says: the addon finds the whole tokens of a whole period.
function isRate (name, value, periodNs) {
  if (typeof value !== 'number' || !Number.isFinite(value) || !(value > 0) || !(periodNs > 0)) {
    throw new RangeError(`${name}: ${value} must be a finite number above 0, of a period above 0`)
  }
  const nearest = value < 1 ? Math.max(value, periodNs / 2 ** 60) : Math.min(value, 2 ** 64 - 2048)
  if (nearest !== value) throw new RangeError(`${name}: ${value}: the nearest that can be is ${nearest}`)
}

// The options that are named, as numbers. A word is its place in a list.
function figures (options, names) {
  const out = new Float64Array(Object.keys(names).length)
  for (const name of Object.keys(options)) {
    if (!(name in names)) throw new TypeError(`${name} is not an option; there are ${Object.keys(names).join(', ')}`)
  }
  Object.entries(names).forEach(([name, words], i) => {
    let value = options[name]
    if (value === undefined) return
    if (Array.isArray(words)) {
      if (value === 'token-bucket') value = 'funnel'
      if (!words.includes(value)) throw new RangeError(`${name}: '${value}' must be one of ${words.join(', ')}`)
      value = words.indexOf(value)
    } else if (words === 'ms') {
      if (typeof value !== 'number' || !(value >= 0)) throw new RangeError(`${name}: ${value} must be milliseconds, 0 or more`)
      value = Math.min(Math.round(value * 1e6), 1.8e19)
    } else if (words === 'rate' && !isWhole(value)) {
      isRate(name, value, Math.round(options.periodMs * 1e6))
    } else if (!isWhole(value)) {
      throw new RangeError(`${name}: ${value} must be a whole number from 0 to 2^53`)
    } else if (words === 'group') {
      value++
    }
    out[i] = value
  })
  return out
}

const SEGMENT = { mode: 0, slots: 0, rules: 0, onFull: ON_FULL, clock: CLOCKS, group: 'group', storeKeys: 0, slotsMax: 0 }
const LAWS = ['none', 'vegas', 'gradient2', 'aimd']
const RULE = { algorithm: ALGORITHMS, mode: MODES, flags: 0, capacity: 0, refill: 'rate', periodMs: 'ms', maxWaitMs: 'ms', warmupMs: 'ms', coldFactorMilli: 0, credit: 0, law: LAWS, least: 0 }

function ruleFigures ({ nextPays = false, countRefused = false, protected: keeps = false, cutOff = false, zone, ...rule }) {
  const flags = (nextPays ? 1 : 0) | (countRefused ? 2 : 0) | (keeps ? 4 : 0) | (cutOff ? 16 : 0)
  return figures({ ...rule, flags }, RULE)
}

function ruleParse (text, algorithm = 'funnel') {
  const numbers = ruleFigures({ algorithm })
  const wrong = native.ruleParse(text, numbers)
  if (typeof wrong === 'string') throw new RangeError(`limit '${text}': ${wrong}`)
  const [number, mode, flags, capacity, refill, periodNs, , , , , law, least] = numbers
  const rule = { algorithm: ALGORITHMS[number], mode: MODES[mode], capacity, refill, periodMs: periodNs / 1e6 }
  if (wrong) rule.zone = wrong[0]
  if (law) Object.assign(rule, { law: LAWS[law], least })
  return flags & 16 ? { ...rule, cutOff: true } : rule
}

function ruleText (rule) {
  const text = native.ruleText(ruleFigures(rule), rule.zone)
  return typeof text === 'number' ? check(text, 'ruleText') : text
}

// The figures of the latest answer in this thread: read them before the next call.
const result = Object.freeze({
  get limit () { return numbers[LIMIT] },
  get remaining () { return numbers[REMAINING] },
  get waitMs () { return numbers[WAIT_MS] },
  get retryAfterMs () { return numbers[RETRY_AFTER_MS] },
  get resetAfterMs () { return numbers[RESET_AFTER_MS] }
})
const counted = Object.freeze({
  get count () { return numbers[COUNT] },
  get applied () { return numbers[APPLIED] },
  get ttlMs () { return numbers[TTL_MS] }
})

// A limit that comes with a call, read once. RangeError: the text is none.
class Limit {
  #bytes = Buffer.alloc(LIMIT_SIZE)

  constructor (text) {
    const wrong = native.limitParse(text, this.#bytes)
    if (typeof wrong === 'string') throw new RangeError(`limit '${text}': ${wrong}`)
  }

  static bytes (limit) {
    if (limit instanceof Limit) return limit.#bytes
    if (!isName(limit)) throw new TypeError(`a limit must be a string or a Limit, not ${limit}`)
    let known = limits.get(limit)
    if (known === undefined) {
      known = new Limit(limit)
      if (limits.size === LIMITS_KEPT) limits.delete(limits.keys().next().value)
      limits.set(limit, known)
    }
    return known.#bytes
  }
}
const { bytes: limitBytes } = Limit
delete Limit.bytes
const limits = new Map() // by their text

const PLACE_ENDS = { dropped: 0x400000, untimed: 0x800000 }

function endFlags (how) {
  if (how === undefined) return 0
  if (!Object.hasOwn(PLACE_ENDS, how)) throw new RangeError("leave: it must be 'dropped' or 'untimed', or be left out")
  return PLACE_ENDS[how]
}

class Place {
  #call

  constructor (call) {
    this.#call = call
  }

  renew () {
    return this.#call('renew')
  }

  leave (how) {
    return this.#call('leave', endFlags(how))
  }
}

class Places {
  #leave
  #settle

  constructor (leave, settle) {
    this.#leave = leave
    this.#settle = settle
  }

  get held () {
    return this.#leave !== null
  }

  settle (used) {
    if (this.held) this.#settle(used)
  }

  leave () {
    this.#leave?.()
    this.#leave = null
  }
}

const NO_PLACES = new Places(null)

const forgotten = new FinalizationRegistry((close) => close())

class Limiter {
  #handle

  constructor (name, { readOnly = false, owner = 0 } = {}) {
    this.name = String(name)
    this.result = result
    this.counted = counted
    this.#open(check(native.open(name, readOnly ? READ_ONLY : 0, owner), 'open', name))
  }

  #open (handle) {
    this.#handle = handle
    forgotten.register(this, () => native.close(handle), this)
  }

  static create (name, options = {}) {
    native.close(check(native.create(name, figures(options, SEGMENT)), 'create', name))
    return new Limiter(name)
  }

  static destroy (name) {
    check(native.destroy(name), 'destroy', name)
  }

  close () {
    forgotten.unregister(this)
    native.close(this.#handle)
    this.#handle = -1
  }

  gone () {
    return check(native.gone(this.#handle), 'gone', this.name) === 1
  }

  ruleFind (name) {
    return check(native.ruleFind(this.#handle, name), 'ruleFind', name)
  }

  ruleSet (name, rule) {
    return check(native.ruleSet(this.#handle, name, ruleFigures(rule), rule.zone), 'ruleSet', name)
  }

  ruleEnsure (name, rule) {
    return check(native.ruleEnsure(this.#handle, name, ruleFigures(rule), rule.zone), 'ruleEnsure', name)
  }

  ruleRemove (name) {
    check(native.ruleRemove(this.#handle, name), 'ruleRemove', name)
  }

  take (rule, key, cost = 1, limit) {
    const answer = limit === undefined ? native.take(this.#handle, rule, key, cost) : native.takeLimit(this.#handle, rule, key, cost, limitBytes(limit))
    if (answer < 0) failed(this, answer, 'take', rule, key, cost)
    return answer === 0
  }

  takeSome (rule, key, most, limit) {
    const answer = native.takeSome(this.#handle, rule, key, most, limit === undefined ? undefined : limitBytes(limit))
    if (answer < 0) failed(this, answer, 'takeSome', rule, key, most)
    return numbers[GRANTED]
  }

  peek (rule, key, cost = 1, limit) {
    const answer = limit === undefined ? native.peek(this.#handle, rule, key, cost) : native.peekLimit(this.#handle, rule, key, cost, limitBytes(limit))
    if (answer < 0) failed(this, answer, 'peek', rule, key, cost)
    return answer === 0
  }

  refund (rule, key, tokens = 1, limit) {
    const answer = limit === undefined ? native.refund(this.#handle, rule, key, tokens) : native.refundLimit(this.#handle, rule, key, tokens, limitBytes(limit))
    if (answer < 0) failed(this, answer, 'refund', rule, key, tokens)
  }

  charge (rule, key, tokens = 1, limit, maxWaitMs = 0) {
    const answer = limit === undefined ? native.charge(this.#handle, rule, key, tokens) : native.chargeLimit(this.#handle, rule, key, tokens, limitBytes(limit), maxWaitMs)
    if (answer < 0) failed(this, answer, 'charge', rule, key, tokens)
  }

  reserve (rule, key, cost = 1, maxWaitMs = Infinity, limit) {
    const answer = limit === undefined ? native.reserve(this.#handle, rule, key, cost, maxWaitMs) : native.reserveLimit(this.#handle, rule, key, cost, limitBytes(limit), Math.min(maxWaitMs, LIMIT_WAIT_MS))
    if (answer < 0) failed(this, answer, 'reserve', rule, key, cost)
    return answer === 0
  }

  pause (rule, key, ms) {
    const answer = native.pause(this.#handle, rule, key, ms)
    if (answer < 0) failed(this, answer, 'pause', rule, key)
    return answer === 0
  }

  paused (rule, key) {
    const answer = native.paused(this.#handle, rule, key)
    if (answer < 0) failed(this, answer, 'paused', rule, key)
    return answer
  }

  count (rule, key, n = 1, ttlMs = 0, bound = Infinity, flags = 0) {
    const answer = native.count(this.#handle, rule, key, n, ttlMs, bound, flags)
    if (answer < 0) failed(this, answer, 'count', rule, key)
    return answer === 0
  }

  enter (rule, key, limit) {
    const bytes = new Uint8Array(HOLD_SIZE)
    const answer = native.enter(this.#handle, rule, key, bytes, limit === undefined ? undefined : limitBytes(limit))
    if (answer < 0) failed(this, answer, 'enter', rule, key)
    return answer === 0 ? new Place((call, flags) => this.#held(call, rule, key, bytes, flags)) : null
  }

  #held (call, rule, key, bytes, flags) {
    const answer = native[call](this.#handle, rule, key, bytes, flags)
    if (answer < 0 && answer !== -os.constants.errno.ETIME) failed(this, answer, call, rule, key)
    return answer === 0
  }

  throttle (key, capacity, count, periodS, quantity = 1) {
    const answer = native.throttle(this.#handle, key, capacity, count, periodS, quantity)
    if (answer < 0) {
      if (!isWhole(count)) isRate('count', count, periodS * 1e9)
      failed(this, answer, 'throttle', undefined, key, capacity, isWhole(count) ? count : 0, periodS, quantity)
    }
    return answer === 0
  }

  reset (rule, key) {
    const answer = native.reset(this.#handle, rule, key)
    if (answer < 0) failed(this, answer, 'reset', rule, key ?? '')
    return answer
  }
}

// Calls wait in a thread of libuv's. While the host has no agent, a thread of this process is it.
class GlobalCounts {
  #handle

  constructor (segment, { owner = 0, backend, backendPrefix = 'shmlimit:', deadlineMs = 0, onFailure, localShare = 0 }) {
    onFailure ??= localShare === 0 ? 'deny' : 'local'
    if (!isName(backend)) throw new TypeError('backend must be a URL: redis://HOST')
    if (!ON_FAILURE.includes(onFailure)) throw new RangeError(`onFailure: '${onFailure}' must be one of ${ON_FAILURE.join(', ')}`)
    if (onFailure === 'local' ? !(Number.isInteger(localShare) && localShare >= 1 && localShare <= 1000) : localShare !== 0) {
      throw new RangeError(`localShare: ${localShare} must be 1 to 1000 thousandths, with onFailure 'local', which needs it`)
    }
    const handle = native.hostsOpen(segment, owner, backend, backendPrefix, deadlineMs, ON_FAILURE.indexOf(onFailure), localShare)
    this.#handle = check(handle, 'backend', segment)
    forgotten.register(this, () => native.hostsClose(handle), this)
  }

  async count (rule, key, n, ttlMs, bound) {
    const [, count, applied, leftMs] = await this.#call(native.hostsCount(this.#handle, rule, key, n, ttlMs, bound), 'count', rule)
    return { count, applied, ttlMs: leftMs }
  }

  async reset (rule, key) {
    const [n] = await this.#call(native.hostsReset(this.#handle, rule, key), 'reset', rule)
    return n
  }

  // A promise, or an error at once.
  async #call (promise, syscall, rule) {
    const array = typeof promise === 'number' ? [promise] : await promise
    check(array[0], syscall, rule)
    return array
  }

  close () {
    forgotten.unregister(this)
    native.hostsClose(this.#handle)
    this.#handle = -1
  }
}

function toFields (lines) {
  const fields = []
  if (lines === '') return fields
  const list = lines.split('\n')
  for (let i = 0; i < list.length; i += 2) fields.push([list[i], list[i + 1]])
  return fields
}

function failure (errno) {
  return errno === 0 ? null : new ShmlimitError(errno, 'ask')
}

// A problem begins or ends. The gate repeats none more than once a minute.
function warn (bad, text) {
  if (bad) process.emitWarning(text, 'ShmlimitWarning')
}

class Gate {
  #handle
  #answer

  constructor (spec, { report = warn } = {}) {
    const handle = native.gateOpen(spec, report)
    check(handle, 'gate')
    this.#handle = handle
    forgotten.register(this, () => native.gateClose(handle), this)
    this.limits = native.gateLimits(handle)
    this.mayWait = /(^|\s)(backend|delay)=/.test(spec)
    this.#answer = Object.freeze({
      get outcome () { return OUTCOMES[numbers[OUTCOME]] },
      get status () { return numbers[STATUS] },
      get error () { return failure(numbers[FAILURE]) },
      get deniedBy () { return numbers[DENIED_BY] },
      get remaining () { return numbers[GATE_REMAINING] },
      get retryAfterMs () { return numbers[GATE_RETRY_AFTER_MS] },
      get fields () { return toFields(native.gateFields(handle)) }
    })
  }

  get answer () {
    return this.#answer
  }

  close () {
    forgotten.unregister(this)
    native.gateClose(this.#handle)
    this.#handle = -1
  }

  attach () {
    check(native.gateAttach(this.#handle), 'attach')
  }

  forwarded (peer, field, advice) {
    return native.gateForwarded(this.#handle, peer, field, advice) === 1
  }

  ask (keys, costs) {
    const answer = native.gateAsk(this.#handle, keys, costs)
    if (answer < 0) this.#failed(answer, keys, costs)
    return answer === 0
  }

  enter (keys, costs) {
    const answer = native.gateEnter(this.#handle, keys, costs)
    if (typeof answer !== 'number') return this.#held(answer)
    if (answer < 0) this.#failed(answer, keys, costs)
    return answer === 0 ? NO_PLACES : null
  }

  async askAsync (keys, costs, { signal } = {}) {
    const { places, ...answer } = await this.#later(keys, costs, false, signal)
    return answer
  }

  enterAsync (keys, costs, { signal } = {}) {
    return this.#later(keys, costs, true, signal)
  }

  async #later (keys, costs, enters, signal) {
    signal?.throwIfAborted()
    let array = native.gateBegin(this.#handle, keys, costs, enters)
    if (typeof array !== 'number' && !Array.isArray(array)) array = await this.#decided(array, signal)
    // The host has no agent, so a thread of libuv waits for the backend.
    if (array === -os.constants.errno.EAGAIN) array = await native.gateAskAsync(this.#handle, keys, costs, enters)
    if (typeof array === 'number') this.#failed(array, keys, costs)
    const [answer, outcome, status, errno, deniedBy, remaining, retryAfterMs, fields, held] = array
    if (answer < 0) this.#failed(answer, keys, costs)
    const error = failure(errno)
    const places = answer !== 0 ? null : held === undefined ? NO_PLACES : this.#held(held)
    return { allowed: answer === 0, outcome: OUTCOMES[outcome], status, error, deniedBy, remaining, retryAfterMs, fields: toFields(fields), places }
  }

  // What becomes of a pending request. Its timer's wait is half of the time so far, from 1 to 16 ms.
  async #decided (pending, signal) {
    for (let answer = 1; ;) {
      await sleep(answer)
      if (signal?.aborted) native.gateCancel(pending)
      signal?.throwIfAborted()
      answer = native.gatePoll(this.#handle, pending)
      if (typeof answer !== 'number' || answer < 0) return answer
    }
  }

  // A gate that was closed leaves its places to the rule's period.
  #held (places) {
    return new Places(() => native.gateLeave(this.#handle, places), (used) => {
      const answer = native.gateSettle(this.#handle, places, used)
      if (answer === -os.constants.errno.EINVAL) throw new RangeError('settle: it must be a whole number from 0 to 2^53, or an array of one for each limit, null where it is not known')
      check(answer, 'settle')
    })
  }

  #failed (answer, keys, costs) {
    if (answer === -os.constants.errno.EINVAL) {
      const all = Array.isArray(keys) ? keys : [keys]
      const pairs = all.filter((key) => typeof key === 'object' && key !== null && !(key instanceof Uint8Array))
      if (pairs.some(({ limit }) => limit != null && !isName(limit))) throw new TypeError('ask: a limit must be a string')
      const each = all.map((key) => pairs.includes(key) ? key.key ?? (key.key === null ? null : NaN) : key)
      if (!each.every((key) => key == null || isName(key) || key instanceof Uint8Array)) throw new TypeError('ask: a key must be a string, a Uint8Array or null')
      const lists = [[all, 'keys'], [costs, 'costs']].filter(([list]) => Array.isArray(list))
      for (const [{ length }, what] of lists) {
        if (length !== this.limits) throw new RangeError(`ask: ${length} ${what}, but the spec has ${this.limits} limits; null where one does not apply`)
      }
      if (![costs].flat().every((cost) => cost === undefined || isWhole(cost))) throw new RangeError('ask: a cost must be a whole number from 0 to 2^53')
    }
    throw new ShmlimitError(answer, 'ask')
  }
}

exports.Limiter = Limiter
exports.Gate = Gate
exports.GlobalCounts = GlobalCounts
exports.Limit = Limit
exports.ruleParse = ruleParse
exports.ruleText = ruleText
exports.ShmlimitError = ShmlimitError
exports.SATURATE = SATURATE
exports.RESTART = RESTART
