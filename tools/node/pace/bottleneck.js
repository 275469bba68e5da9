// Bottleneck 2, whose limits are those of all processes of the host: Bottleneck itself, on a store in shared memory.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { createRequire } = require('node:module')
const { LONGEST_MS } = require('../stores/counters.js')
const { AHEAD_MS, OPTIONS, Rules, ruleName } = require('./rules.js')

// That of the program, where this package is a link to a folder elsewhere, or is Debian's.
function load (name) {
  try {
    return require(name)
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error
    return createRequire(require.main?.filename ?? `${process.cwd()}/`)(name)
  }
}

const Original = load('bottleneck')
const LocalDatastore = load('bottleneck/lib/LocalDatastore')
const { BottleneckError } = Original

// How often to try again while all places are held: a process that leaves one tells no other.
const PLACE_MS = 20
// How often to try again at least: another process may have filled the reservoir, or ended a pause.
const AGAIN_MS = 1000
// How far ahead a job may take its turn. Until then it is queued by priority, and lost with its process alone.
const SCHEDULED_MS = 1000

function same (settings, other) {
  if (settings.reservoir !== (settings[other] ?? settings.reservoir)) throw new BottleneckError(`reservoir must be the same as ${other}: it is full when it begins`)
}

// The rule of a reservoir. Its tokens are jobs that can begin.
function reservoirRule (settings) {
  const { reservoir, reservoirRefreshInterval: refreshMs, reservoirIncreaseInterval: increaseMs, reservoirIncreaseAmount: amount } = settings
  if (!Number.isInteger(reservoir) || reservoir < 0) throw new BottleneckError(`reservoir: ${reservoir} must be a whole number, 0 or more`)
  if (refreshMs != null && increaseMs != null) throw new BottleneckError('a reservoir has a refresh or an increase, not both')
  if (refreshMs != null) same(settings, 'reservoirRefreshAmount')
  if (increaseMs == null) return { algorithm: 'counter', capacity: Math.max(reservoir, 1), periodMs: refreshMs ?? LONGEST_MS }
  same(settings, 'reservoirIncreaseMaximum')
  return { algorithm: 'funnel', capacity: reservoir, refill: amount, periodMs: increaseMs }
}

class SharedDatastore extends LocalDatastore {
  #rules
  #prefix
  #key
  #made = {} // rules by their kind
  #held = new Map() // places by jobs
  #timer

  constructor (instance, settings, instanceSettings, { rule, ...options }) {
    super(instance, settings, instanceSettings)
    this.#prefix = rule ?? instance.id
    this.#key = instance.id
    this.#rules = new Rules(options)
    this.#make()
  }

  #make () {
    const { minTime, maxConcurrent, reservoir } = this.storeOptions
    if (maxConcurrent !== null && !(Number.isInteger(maxConcurrent) && maxConcurrent >= 0)) throw new BottleneckError(`maxConcurrent: ${maxConcurrent} must be a whole number, 0 or more`)
    this.#made = {
      time: minTime > 0 && { algorithm: 'funnel', capacity: 1, refill: 1, periodMs: minTime, maxWaitMs: AHEAD_MS },
      places: maxConcurrent > 0 && { algorithm: 'hold', capacity: maxConcurrent, periodMs: 86400e3 },
      reservoir: reservoir !== null && reservoirRule(this.storeOptions)
    }
  }

  #use (call, kind, ...args) {
    return this.#rules.use(call, ruleName(this.#prefix, `.${kind}`), this.#made[kind], this.#key, ...args)
  }

  #free (kind) {
    if (!this.#made[kind]) return null
    this.#use('peek', kind)
    return this.#rules.limiter().result.remaining
  }

  // The original's looks whether its reservoir is due.
  _startHeartbeat () {}

  async __disconnect__ (flush) {
    await super.__disconnect__(flush)
    clearTimeout(this.#timer)
  }

  computeCapacity () {
    const { maxConcurrent, reservoir } = this.storeOptions
    const places = maxConcurrent === 0 ? 0 : this.#free('places')
    const tokens = reservoir === 0 ? 0 : this.#free('reservoir')
    return places === null || tokens === null ? places ?? tokens : Math.min(places, tokens)
  }

  check (weight, now) {
    return super.check(weight, now) && (!this.#made.time || this.#use('peek', 'time'))
  }

  // All that the job needs, or nothing, and a time after which to ask again.
  async __register__ (index, weight) {
    await this.yieldLoop()
    if (!this.#enter(index, weight)) return this.#later(PLACE_MS)
    let waitMs = Math.max(this._nextRequest - Date.now(), 0)
    if (!this.#draw(weight)) {
      const { retryAfterMs } = this.#rules.limiter().result
      this.#leave(index)
      return this.#later(retryAfterMs)
    }
    if (this.#made.time) {
      const allowed = this.#use('reserve', 'time', 1, Math.max(SCHEDULED_MS, this.storeOptions.minTime))
      const { waitMs: turnMs, retryAfterMs } = this.#rules.limiter().result
      if (!allowed) {
        this.#leave(index)
        if (this.#made.reservoir && weight > 0) this.#use('refund', 'reservoir', weight)
        return this.#later(retryAfterMs)
      }
      waitMs = Math.max(waitMs, Math.ceil(turnMs))
    }
    this._running += weight
    return { success: true, wait: waitMs, reservoir: this.#free('reservoir') ?? undefined }
  }

  #later (ms) {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.instance._drainAll(), Math.min(Math.max(ms, 1), AGAIN_MS))
    return { success: false }
  }

  // A job of a weight holds as many places.
  #enter (index, weight) {
    if (!this.#made.places) return this.storeOptions.maxConcurrent !== 0 || weight === 0
    const places = []
    this.#held.set(index, places)
    while (places.length < weight) {
      const place = this.#use('enter', 'places')
      if (place === null) {
        this.#leave(index)
        return false
      }
      places.push(place)
    }
    return true
  }

  #draw (weight) {
    if (!this.#made.reservoir || weight === 0) return true
    return this.storeOptions.reservoir > 0 && this.#use('take', 'reservoir', weight)
  }

  #leave (index) {
    for (const place of this.#held.get(index) ?? []) place.leave()
    this.#held.delete(index)
  }

  __free__ (index, weight) {
    this.#leave(index)
    return super.__free__(index, weight)
  }

  // Of all processes. Without maxConcurrent only this one's are known.
  async __running__ () {
    const free = this.#free('places')
    return free === null ? super.__running__() : this.storeOptions.maxConcurrent - free
  }

  async __currentReservoir__ () {
    await this.yieldLoop()
    return this.storeOptions.reservoir === 0 ? 0 : this.#free('reservoir')
  }

  // Jobs are given back to a reservoir, up to what it had at first.
  async __incrementReservoir__ (n) {
    await this.yieldLoop()
    const free = this.#free('reservoir')
    if (free === null || n > this.storeOptions.reservoir - free) throw new BottleneckError(`incrementReservoir(${n}): a reservoir is never above its setting; updateSettings({ reservoir }) changes that`)
    this.#use(n < 0 ? 'take' : 'refund', 'reservoir', Math.abs(n))
    const now = this.#free('reservoir')
    this.instance._drainAll(this.computeCapacity())
    return now
  }

  async __updateSettings__ (settings) {
    await this.yieldLoop()
    Object.assign(this.storeOptions, settings)
    this.#make()
    if (settings.reservoir > 0) this.#use('reset', 'reservoir')
    this.instance._drainAll(this.computeCapacity())
    return true
  }
}

class Bottleneck extends Original {
  constructor (options = {}, ...invalid) {
    const ours = Object.fromEntries(Object.entries(options ?? {}).filter(([name]) => name === 'rule' || OPTIONS.includes(name)))
    const theirs = Object.fromEntries(Object.entries(options ?? {}).filter(([name]) => !(name in ours)))
    if ((theirs.datastore ?? 'local') !== 'local') throw new BottleneckError(`datastore: '${theirs.datastore}': the store is the segment`)
    super(theirs, ...invalid)
    if (typeof theirs.id !== 'string') throw new BottleneckError('the limiter needs { id: NAME }, which all processes say that share its limits')
    const { storeOptions, Promise, timeout, heartbeatInterval } = this._store
    clearInterval(this._store.heartbeat)
    this._store = new SharedDatastore(this, storeOptions, { Promise, timeout, heartbeatInterval }, ours)
  }
}

// Its limiters have one rule of each kind, and their keys.
class Group extends Original.Group {
  constructor (options = {}) {
    if (typeof options.id !== 'string') throw new BottleneckError('the group needs { id: NAME }, which all processes say that share its limits')
    super({ rule: options.id, ...options })
    this.Bottleneck = Bottleneck
  }
}

Bottleneck.default = Bottleneck
Bottleneck.Group = Bottleneck.prototype.Group = Group

module.exports = Bottleneck
