// A limiter of rate-limiter-flexible 5 and later, with all that its stores have: blocks, penalties, insurance.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { createRequire } = require('node:module')
const { Counters, LONGEST_MS } = require('./counters.js')

// That of the program, where this package is a link to a folder elsewhere, or is Debian's.
function loadFlexible () {
  try {
    return require('rate-limiter-flexible')
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error
    return createRequire(require.main?.filename ?? `${process.cwd()}/`)('rate-limiter-flexible')
  }
}

const { RateLimiterRedis, RateLimiterRes } = loadFlexible()

// What all its stores extend, which it does not export by name.
const RateLimiterStoreAbstract = Object.getPrototypeOf(RateLimiterRedis)
const FOREVER_MS = LONGEST_MS - 366 * 86400e3 // longer than this is meant to last for ever

function whole (points) {
  const n = Number(points)
  if (!Number.isInteger(n)) throw new Error('Consuming decimal number of points is not supported by this package')
  return n
}

class RateLimiterShmlimit extends RateLimiterStoreAbstract {
  #counters

  constructor ({ segment, rule, slots, mode, group, owner, backend, backendPrefix, deadlineMs, onFailure, localShare, ...options }) {
    super(options)
    this.#counters = new Counters({ segment, rule, slots, mode, group, owner, backend, backendPrefix, deadlineMs, onFailure, localShare },
      { rule: 'rate-limiter-flexible', limit: this.keyPrefix })
    this.#counters.only(!(options.blockDuration > 0), 'blockDuration')
  }

  close () {
    this.#counters.close()
  }

  _getRateLimiterRes (rlKey, changedPoints, { count, ms }) {
    return new RateLimiterRes(Math.max(this.points - count, 0), ms, count, count === changedPoints)
  }

  async _upsert (rlKey, points, msDuration, forceExpire = false) {
    const n = whole(points)
    const ttlMs = msDuration > 0 ? msDuration : LONGEST_MS

    this.#counters.only(!forceExpire && n >= 0, 'set(), block() and reward()')
    if (this.#counters.shared && n > 0) return this.#read(await this.#counters.addEverywhere(rlKey, n, ttlMs, this.points))
    if (forceExpire) {
      this.#counters.set(rlKey, n, ttlMs)
      return { count: n, ms: msDuration > 0 ? msDuration : -1 }
    }
    return this.#read(this.#counters.add(rlKey, n, ttlMs))
  }

  async _get (rlKey) {
    const counted = this.#counters.read(rlKey)
    return counted.ttlMs === 0 ? null : this.#read(counted)
  }

  async _delete (rlKey) {
    // One that is over, and still has its slot, is none.
    const lived = this.#counters.read(rlKey).ttlMs > 0
    if (this.#counters.shared) await this.#counters.resetEverywhere(rlKey)
    this.#counters.reset(rlKey)
    return lived
  }

  #read ({ count, ttlMs }) {
    return { count, ms: ttlMs > FOREVER_MS ? -1 : Math.floor(ttlMs) }
  }
}

exports.RateLimiterShmlimit = RateLimiterShmlimit
