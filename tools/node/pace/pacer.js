// A pacer: calls wait for their turn, in one line for all processes of the host.
//
// The first call that waits in this process has a reservation, and the others wait behind it. So processes take turns, one that is
// killed loses one reservation, and a call that is aborted leaves its turn to the next one here. With none here it is that of the
// next one that comes before it, or passes unused: to give it back would let others pass at the time of the last one in the line.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { setMaxListeners } = require('node:events')
const { ruleParse } = require('../index.js')
const { AHEAD_MS, OPTIONS, Rules, ruleName } = require('./rules.js')

// How often to try again while all places are held: a process that leaves one tells no other.
const PLACE_MS = 20
const TIMER_MAX_MS = 2 ** 31 - 1
const RESERVING = ['funnel', 'warmup', 'gcra']

class QueueFull extends Error {
  constructor (max) {
    super(`${max} calls wait already`)
    this.code = 'EQUEUEFULL'
  }
}
Object.defineProperty(QueueFull.prototype, 'name', { value: 'QueueFull' })

// Calls that wait, in order. One that leaves the middle is skipped later, so that no call walks through all.
class Queue {
  #items = []
  #head = 0
  size = 0

  push (waiter) {
    this.#items.push(waiter)
    this.size++
  }

  get first () {
    return this.#items[this.#head]
  }

  get all () {
    return this.#items.filter((waiter) => !waiter.gone)
  }

  remove (waiter) {
    waiter.gone = true
    this.size--
    while (this.#items[this.#head]?.gone) this.#head++
    if (this.#items.length <= 2 * this.size + 32) return
    this.#items = this.all
    this.#head = 0
  }
}

class Pacer {
  #rules
  #rule
  #name
  #key
  #maxQueue
  #ref
  #holds
  #reserves
  #lines = new Map() // of keys for which calls wait
  #unused = new Map() // of keys: reservations that no call waits for
  #unusedMost = 16
  #closed = false
  #queued = 0

  // `limit` is a text, such as "10/s burst 1" or "4 at once", or a rule.
  constructor (limit, { rule, key = 'all', maxQueue = Infinity, ref = true, ...options } = {}) {
    const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name))
    if (unknown !== undefined) throw new TypeError(`${unknown} is not an option; there are rule, key, maxQueue, ref, ${OPTIONS.join(', ')}`)
    if (typeof rule !== 'string') throw new TypeError('a pacer needs { rule: NAME }, which all processes say that share its limit')
    if (!(maxQueue >= 0)) throw new RangeError(`maxQueue: ${maxQueue} must be 0 or more`)
    const parsed = typeof limit === 'string' ? ruleParse(limit) : { algorithm: 'funnel', ...limit }
    this.#holds = parsed.algorithm === 'hold'
    this.#reserves = RESERVING.includes(parsed.algorithm)
    this.#rule = this.#reserves ? { maxWaitMs: AHEAD_MS, ...parsed } : parsed
    this.#name = ruleName(rule)
    this.#key = key
    this.#maxQueue = maxQueue
    this.#ref = ref
    this.#rules = new Rules(options)
  }

  // How many calls wait in this process.
  get queued () {
    return this.#queued
  }

  // Resolves when it is the caller's turn: to a place, which it must leave, of a limit of how many at once.
  acquire ({ cost = 1, key = this.#key, signal } = {}) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      this.#check(cost)
      // What may not wait reserves nothing.
      if (this.#queued >= this.#maxQueue) {
        const place = this.tryAcquire({ cost, key })
        if (!place) throw new QueueFull(this.#maxQueue)
        resolve(this.#holds ? place : undefined)
        return
      }
      const line = this.#lines.get(key) ?? { key, waiters: new Queue(), paid: 0, due: 0, timer: undefined, ...this.#takeUnused(key) }
      const waiter = { cost, resolve, reject, signal }
      line.waiters.push(waiter)
      this.#queued++
      if (line.waiters.size === 1) this.#serve(line)
      if (waiter.gone) return // it had its turn, or an error
      if (signal !== undefined) {
        waiter.aborted = () => {
          this.#remove(line, waiter)
          reject(signal.reason)
        }
        // Node would warn of an eleventh.
        setMaxListeners(0, signal)
        signal.addEventListener('abort', waiter.aborted, { once: true })
      }
    })
  }

  // True, or a place: it is the caller's turn now, and no call waits.
  tryAcquire ({ cost = 1, key = this.#key } = {}) {
    this.#check(cost)
    if (this.#lines.has(key)) return false
    const place = this.#rules.use(this.#holds ? 'enter' : 'take', this.#name, this.#rule, key, ...this.#holds ? [] : [cost])
    return place && (this.#holds ? this.#left(place, key) : true)
  }

  // What a function returns that waits for its turn, and holds its place until its promise is settled.
  wrap (fn, options) {
    const pacer = this
    return async function (...args) {
      const place = await pacer.acquire(typeof options === 'function' ? options(...args) : options)
      try {
        return await fn.apply(this, args)
      } finally {
        place?.leave()
      }
    }
  }

  // The tokens that can be taken now, the places that are free, and the times of an answer.
  peek ({ cost = 1, key = this.#key } = {}) {
    this.#rules.use('peek', this.#name, this.#rule, key, cost)
    return { ...Object.fromEntries(['remaining', 'retryAfterMs', 'resetAfterMs'].map((name) => [name, this.#rules.limiter().result[name]])) }
  }

  close () {
    this.#closed = true
    for (const line of this.#lines.values()) {
      for (const waiter of line.waiters.all.reverse()) {
        this.#remove(line, waiter)
        waiter.reject(new Error('the pacer was closed'))
      }
    }
    this.#rules.close()
  }

  #check (cost) {
    if (this.#closed) throw new Error('the pacer was closed')
    if (!Number.isInteger(cost) || cost < 1) throw new RangeError(`cost: ${cost} must be a whole number, 1 or more`)
    if (this.#holds && cost !== 1) throw new RangeError('cost: a limit of how many at once has none')
  }

  pause (ms, { key = this.#key } = {}) {
    return this.#rules.use('pause', this.#name, this.#rule, key, ms)
  }

  // Calls whose turn it is go on. An error rejects the first one, and the next one asks again.
  #serve (line) {
    clearTimeout(line.timer)
    line.timer = undefined
    while (line.waiters.size > 0) {
      const waiter = line.waiters.first
      let waitMs
      try {
        waitMs = this.#ask(line, waiter)
        if (waitMs === Infinity) throw new RangeError(`limit ${this.#name}: a cost of ${waiter.cost} never fits`)
      } catch (error) {
        this.#drop(line, waiter)
        waiter.reject(error)
        continue
      }
      if (waitMs > 0) {
        // A timer ends up to a millisecond early.
        line.timer = setTimeout(() => this.#serve(line), Math.min(Math.ceil(waitMs) + 1, TIMER_MAX_MS))
        if (!this.#ref) line.timer.unref()
        this.#lines.set(line.key, line)
        return
      }
      this.#drop(line, waiter)
      waiter.resolve(waiter.place)
    }
    this.#end(line)
  }

  // 0: it is the waiter's turn; else the time after which to ask again.
  #ask (line, waiter) {
    if (this.#holds) {
      const place = this.#rules.use('enter', this.#name, this.#rule, line.key)
      if (place === null) return PLACE_MS
      waiter.place = this.#left(place, line.key)
      return 0
    }
    const missing = waiter.cost - line.paid
    const pausedMs = this.#rules.use('paused', this.#name, this.#rule, line.key)
    if (pausedMs > 0 && (missing > 0 || line.due < performance.now() + pausedMs)) {
      // A turn that comes in the pause passes unused.
      line.paid = 0
      return pausedMs
    }
    if (missing > 0) {
      const allowed = this.#reserves
        ? this.#rules.use('reserve', this.#name, this.#rule, line.key, missing)
        : this.#rules.use('take', this.#name, this.#rule, line.key, missing)
      const { waitMs, retryAfterMs } = this.#rules.limiter().result
      if (!allowed) return Math.max(retryAfterMs, 1)
      line.paid += missing
      line.due = Math.max(line.due, performance.now() + waitMs)
    }
    const leftMs = line.due - performance.now()
    if (leftMs <= 0) line.paid -= waiter.cost
    return Math.max(leftMs, 0)
  }

  // The next one here enters at once.
  #left (place, key) {
    const leave = place.leave.bind(place)
    place.leave = () => {
      const held = leave()
      const line = this.#lines.get(key)
      if (line !== undefined) this.#serve(line)
      return held
    }
    return place
  }

  #drop (line, waiter) {
    line.waiters.remove(waiter)
    this.#queued--
    if (waiter.aborted) waiter.signal.removeEventListener('abort', waiter.aborted)
  }

  // A call that is aborted leaves what it has reserved to the next one here.
  #remove (line, waiter) {
    const first = line.waiters.first === waiter
    this.#drop(line, waiter)
    if (line.waiters.size > 0) {
      if (first) this.#serve(line)
      return
    }
    this.#end(line)
  }

  #takeUnused (key) {
    const left = this.#unused.get(key)
    this.#unused.delete(key)
    return left?.due > performance.now() ? left : undefined
  }

  #end (line) {
    clearTimeout(line.timer)
    this.#lines.delete(line.key)
    if (line.paid === 0) return
    this.#unused.set(line.key, { paid: line.paid, due: line.due })
    if (this.#unused.size <= this.#unusedMost) return
    const now = performance.now()
    for (const [key, { due }] of this.#unused) if (due <= now) this.#unused.delete(key)
    this.#unusedMost = 2 * this.#unused.size + 16
  }
}

exports.Pacer = Pacer
exports.QueueFull = QueueFull
