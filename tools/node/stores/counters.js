// counters: what the stores share: counts that expire, under one rule of one segment, both of which are created where they
// are missing. The segment is reopened when it was replaced, which is looked at once a second.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { createHash } = require('node:crypto')
const { performance } = require('node:perf_hooks')
const { Limiter, RESTART, SATURATE } = require('../index.js')

const CAPACITY = 2 ** 26 - 1 // with it a count can live for 366 days, to half a millisecond
const LONGEST_MS = 366 * 86400e3
const SHORTEST_MS = 0.001
const OPTIONS = ['slots', 'mode', 'group', 'owner']
const KEY_MAX = 1024
const LOOK_EVERY_MS = 1000

function open (segment, { owner = 0, slots, mode, group }) {
  for (let again = false; ; again = true) {
    try {
      return new Limiter(segment, { owner })
    } catch (error) {
      if (error.code !== 'ENOENT' || again) throw error
    }
    try {
      return Limiter.create(segment, { slots, mode, group })
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
  if (!(ms <= LONGEST_MS)) throw new RangeError(`a count lives for 366 days at most, not for ${ms} ms`)
  return Math.max(ms, SHORTEST_MS)
}

class Counters {
  #limiter
  #id
  #options
  #looked = 0

  constructor ({ segment, rule, ...options }) {
    if (typeof segment !== 'string') throw new TypeError('the store needs { segment: NAME }')
    const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name))
    if (unknown !== undefined) throw new TypeError(`${unknown} is not an option; there are segment, rule, ${OPTIONS.join(', ')}`)
    this.segment = segment
    this.rule = rule
    this.#options = options
    this.#current()
  }

  // The rule's id. Others may remove the rule, and set it again under another.
  #find (limiter) {
    try {
      return limiter.ruleFind(this.rule)
    } catch (error) {
      if (error.code !== 'ESRCH') throw error
      return limiter.ruleSet(this.rule, { algorithm: 'counter', capacity: CAPACITY })
    }
  }

  #current () {
    const now = performance.now()
    if (this.#limiter === undefined || now - this.#looked >= LOOK_EVERY_MS) {
      if (this.#limiter?.gone()) this.close()
      const limiter = this.#limiter ?? open(this.segment, this.#options)
      this.#id = this.#find(limiter)
      this.#limiter = limiter
      this.#looked = now
    }
    return this.#limiter
  }

  // Returns { count, applied, ttlMs }, which the next call of this thread overwrites.
  #count (key, n, ttlMs, bound, flags) {
    const limiter = this.#current()
    try {
      limiter.count(this.#id, key, n, ttlMs, bound, flags)
    } catch (error) {
      if (error.code !== 'ESRCH' && error.code !== 'EOPNOTSUPP') throw error
      this.#id = this.#find(limiter)
      limiter.count(this.#id, key, n, ttlMs, bound, flags)
    }
    return limiter.counted
  }

  // Add n, which may be below 0; the count stays at 0 or more.
  add (key, n, ttlMs, bound = CAPACITY) {
    return this.#count(toKey(key), n, toTtl(ttlMs), bound, n < 0 ? SATURATE : 0)
  }

  read (key) {
    return this.#count(toKey(key), 0, 0, CAPACITY, 0)
  }

  // Let a count that lives end after ttlMs from now.
  restart (key, ttlMs) {
    return this.#count(toKey(key), 0, toTtl(ttlMs), CAPACITY, RESTART)
  }

  // In one step: the sum is at least the bound, which the count so becomes.
  set (key, n, ttlMs) {
    if (n <= 0) this.reset(key)
    else this.#count(toKey(key), n, toTtl(ttlMs), n, SATURATE | RESTART)
  }

  // Without a key: all of the rule. Returns how many there were.
  reset (key) {
    return this.#current().reset(this.#id, key === undefined ? undefined : toKey(key))
  }

  close () {
    this.#limiter?.close()
    this.#limiter = undefined
  }
}

exports.Counters = Counters
exports.LONGEST_MS = LONGEST_MS
