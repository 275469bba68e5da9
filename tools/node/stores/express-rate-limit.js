// A store for express-rate-limit 6 and later.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { CAPACITY, Counters } = require('./counters.js')

class ShmlimitStore {
  localKeys = false
  windowMs = 60000
  #bound = CAPACITY
  #counters

  constructor (options = {}) {
    this.#counters = new Counters(options, { rule: 'express-rate-limit', limit: '' })
    // Two stores on one request may count the same client, if their rules differ.
    this.prefix = `${options.segment}/${this.#counters.rule}/`
  }

  // Of a limit that is a function nothing is known here: each request asks the backend.
  init (options) {
    const limit = options.limit ?? options.max
    this.#counters.only(!options.skipFailedRequests && !options.skipSuccessfulRequests, 'skipFailedRequests, skipSuccessfulRequests')
    this.windowMs = options.windowMs
    this.#bound = limit >= 0 ? Math.min(Math.floor(limit), CAPACITY) : CAPACITY
  }

  #answer ({ count, ttlMs }, now) {
    return { totalHits: count, resetTime: new Date(now + Math.min(ttlMs, this.windowMs)) }
  }

  get (key) {
    const counted = this.#counters.read(key)
    return counted.ttlMs === 0 ? undefined : this.#answer(counted, this.#counters.now)
  }

  increment (key) {
    if (this.#counters.shared) return this.#counters.addEverywhere(key, 1, this.windowMs, this.#bound).then((counted) => this.#answer(counted, Date.now()))
    return this.#answer(this.#counters.add(key, 1, this.windowMs), this.#counters.now)
  }

  decrement (key) {
    this.#counters.only(false, 'decrement()')
    this.#counters.add(key, -1, this.windowMs)
  }

  resetKey (key) {
    if (this.#counters.shared) return this.#counters.resetEverywhere(key)
    this.#counters.reset(key)
  }

  resetAll () {
    if (this.#counters.shared) return this.#counters.resetEverywhere()
    this.#counters.reset()
  }

  shutdown () {
    this.#counters.close()
  }
}

exports.ShmlimitStore = ShmlimitStore
