// counters: what the stores share: counts that expire, under one rule of one segment, both of which are created where they
// are missing. The segment is reopened when it was replaced, which is looked at once a second.
//
// With a backend all hosts share the counts: see addEverywhere(). Each denies by itself what it knows to be beyond the bound.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { createHash } = require('node:crypto')
const { GlobalCounts, Limiter, RESTART, SATURATE } = require('../index.js')

const CAPACITY = 2 ** 26 - 1
const YEAR_MS = 366 * 86400e3 // with this capacity, the longest time of a resolution of half a millisecond
const LONGEST_MS = 10 * YEAR_MS
const SHORTEST_MS = 0.001
const OPTIONS = ['slots', 'mode', 'group', 'owner']
const BACKEND = ['backend', 'backendPrefix', 'deadlineMs', 'onFailure', 'localShare']
const KEY_MAX = 1024
const LOOK_EVERY_MS = 1000

function open (segment, { owner = 0, slots, mode, group, rules }) {
  for (let again = false; ; again = true) {
    try {
      return new Limiter(segment, { owner })
    } catch (error) {
      if (error.code !== 'ENOENT' || again) throw error
    }
    try {
      return Limiter.create(segment, { slots, mode, group, rules })
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
  }
}

// A key of any length: one that the segment cannot have is replaced by its SHA-512.
function toKey (key) {
  if (!['string', 'number', 'bigint'].includes(typeof key)) throw new TypeError(`a key must be a string or a number, not ${key}`)
  const text = String(key)
  if (text.length > 0 && (text.length <= KEY_MAX / 3 || Buffer.byteLength(text) <= KEY_MAX)) return text
  return createHash('sha512').update(text).digest()
}

function toTtl (ms) {
  if (!(ms <= LONGEST_MS)) throw new RangeError(`a count lives for ten years at most, not for ${ms} ms`)
  return Math.max(ms, SHORTEST_MS)
}

// Where a count is: under the rule, or, if it shall live for more than a year, under one of its own with a resolution of
// eight milliseconds, which is made for the first such count.
const SHORT = 0
const LONG = 1
const PERIODS_MS = [YEAR_MS, LONGEST_MS]

// What stores of this thread that were given no rule count: two of them would take the requests of two limits for those of one.
const withoutRule = new Set()

class Counters {
  #limiter
  #claim
  #everywhere
  #ids = []
  #options
  #looked = 0
  now = 0 // the date of the last call

  // Where the front-end's keys do not say of which limit they are, one store can have its default rule for `limit`.
  constructor ({ segment, rule, ...options }, { rule: usual, limit }) {
    if (typeof segment !== 'string') throw new TypeError('the store needs { segment: NAME }')
    const known = [...OPTIONS, ...BACKEND]
    const given = Object.keys(options).filter((name) => options[name] !== undefined)
    const unknown = given.find((name) => !known.includes(name))
    if (unknown !== undefined) throw new TypeError(`${unknown} is not an option; there are segment, rule, ${known.join(', ')}`)
    this.shared = given.some((name) => BACKEND.includes(name))
    this.segment = segment
    this.rule = rule ?? usual
    this.#options = options
    const claim = rule === undefined && limit !== undefined ? `${segment} ${usual} ${limit}` : undefined
    if (withoutRule.has(claim)) throw new TypeError(`segment ${segment}: another store has the rule ${usual}, and two would share their counts: give each a rule of its own`)
    this.#current()
    if (claim !== undefined) withoutRule.add(claim)
    this.#claim = claim
  }

  #name (where) {
    return where === SHORT ? this.rule : `${this.rule}.years`
  }

  // Sets the rule if it is missing, or if another one has its name.
  #ensure (limiter, where) {
    this.#ids[where] = limiter.ruleEnsure(this.#name(where), { algorithm: 'counter', capacity: CAPACITY, periodMs: PERIODS_MS[where] })
  }

  // The rules' ids. Others may remove a rule, and set it again under another.
  #find (limiter) {
    this.#ensure(limiter, SHORT)
    try {
      this.#ids[LONG] = limiter.ruleFind(this.#name(LONG))
    } catch (error) {
      if (error.code !== 'ESRCH' && error.code !== 'ENAMETOOLONG') throw error
      this.#ids[LONG] = undefined
    }
  }

  // WHY Date: performance.now() costs as much again, and a store needs the date. A date that goes back is a reason to look.
  #current () {
    const now = this.now = Date.now()
    if (this.#limiter === undefined || now - this.#looked >= LOOK_EVERY_MS || now < this.#looked) {
      if (this.#limiter?.gone()) this.#detach()
      const limiter = this.#limiter ?? open(this.segment, this.#options)
      this.#find(limiter)
      if (this.shared) this.#everywhere ??= new GlobalCounts(this.segment, this.#options)
      this.#limiter = limiter
      this.#looked = now
    }
    return this.#limiter
  }

  // Returns { count, applied, ttlMs }, which the next call of this thread overwrites.
  #count (where, key, n, ttlMs, bound, flags) {
    const limiter = this.#current()
    if (this.#ids[where] === undefined) this.#ensure(limiter, where)
    try {
      limiter.count(this.#ids[where], key, n, ttlMs, bound, flags)
    } catch (error) {
      if (error.code !== 'ESRCH' && error.code !== 'EOPNOTSUPP') throw error
      this.#ensure(limiter, where)
      limiter.count(this.#ids[where], key, n, ttlMs, bound, flags)
    }
    return limiter.counted
  }

  // Where the key's count is, or will be if it begins now.
  #where (key, ttlMs) {
    if (ttlMs > YEAR_MS) return LONG
    return this.#ids[LONG] !== undefined && this.#count(LONG, key, 0, 0, CAPACITY, 0).ttlMs > 0 ? LONG : SHORT
  }

  // Add n, which may be below 0; the count stays at 0 or more. Beyond what can be counted nothing is within a limit.
  add (key, n, ttlMs, bound = CAPACITY) {
    const bytes = toKey(key)
    const ttl = toTtl(ttlMs)
    const counted = this.#count(this.#where(bytes, ttl), bytes, n, ttl, bound, n < 0 ? SATURATE : 0)
    return n > counted.applied && bound >= CAPACITY ? { count: Number.MAX_SAFE_INTEGER, applied: 0, ttlMs: counted.ttlMs } : counted
  }

  // Add n to the count that all hosts share. Beyond the bound what fits is added, and the count is one above the bound.
  async addEverywhere (key, n, ttlMs, bound = CAPACITY) {
    const bytes = toKey(key)
    const ttl = toTtl(ttlMs)
    const where = ttl > YEAR_MS ? LONG : SHORT
    const here = { ...this.#count(where, bytes, 0, 0, CAPACITY, 0) }
    if (here.count >= bound) return { count: bound + 1, applied: 0, ttlMs: here.ttlMs }
    let counted
    try {
      counted = await this.#everywhere.count(this.#name(where), bytes, n, ttl, bound)
    } catch (error) {
      if (error.code !== 'ESRCH' && error.code !== 'EOPNOTSUPP') throw error
      this.#ensure(this.#current(), where)
      counted = await this.#everywhere.count(this.#name(where), bytes, n, ttl, bound)
    }
    return counted.applied === n ? counted : { ...counted, count: bound + 1 }
  }

  // Without a key: all of the rule, on all hosts.
  async resetEverywhere (key) {
    this.reset(key)
    const bytes = key === undefined ? undefined : toKey(key)
    for (const [where, id] of this.#ids.entries()) {
      if (id !== undefined) await this.#everywhere.reset(this.#name(where), bytes)
    }
  }

  // What hosts do not share is refused.
  only (held, what) {
    if (this.shared && !held) throw new TypeError(`${what}: not with a backend`)
  }

  read (key) {
    const bytes = toKey(key)
    return this.#count(this.#where(bytes, 0), bytes, 0, 0, CAPACITY, 0)
  }

  // Let a count that lives end after ttlMs from now.
  restart (key, ttlMs) {
    const bytes = toKey(key)
    const ttl = toTtl(ttlMs)
    const now = this.#where(bytes, 0)
    if (ttl > PERIODS_MS[now]) return this.set(key, this.read(key).count, ttl)
    return this.#count(now, bytes, 0, ttl, CAPACITY, RESTART)
  }

  // The sum is at least the bound, which the count so becomes: in one step, if it lives for a year at most, as before.
  set (key, n, ttlMs) {
    const bytes = toKey(key)
    const ttl = toTtl(ttlMs)
    const where = ttl > YEAR_MS ? LONG : SHORT
    if (n <= 0 || where === LONG || this.#where(bytes, 0) === LONG) this.reset(key)
    if (n > 0) this.#count(where, bytes, n, ttl, n, SATURATE | RESTART)
  }

  // Without a key: all of the rule. Returns how many there were.
  reset (key) {
    const limiter = this.#current()
    const bytes = key === undefined ? undefined : toKey(key)
    return this.#ids.reduce((sum, id) => sum + (id === undefined ? 0 : limiter.reset(id, bytes)), 0)
  }

  close () {
    this.#detach()
    withoutRule.delete(this.#claim)
  }

  #detach () {
    this.#limiter?.close()
    this.#everywhere?.close()
    this.#limiter = this.#everywhere = undefined
  }
}

exports.Counters = Counters
exports.open = open
exports.toKey = toKey
exports.CAPACITY = CAPACITY
exports.LONGEST_MS = LONGEST_MS
