// A store for express-rate-limit 6 and later.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { Counters } = require('./counters.js')

class ShmlimitStore {
  localKeys = false
  windowMs = 60000
  #counters

  constructor ({ rule = 'express-rate-limit', ...options } = {}) {
    this.#counters = new Counters({ rule, ...options })
    // Two stores on one request may count the same client, if their rules differ.
    this.prefix = `${options.segment}/${rule}/`
  }

  init (options) {
    this.windowMs = options.windowMs
  }

  get (key) {
    const { count, ttlMs } = this.#counters.read(key)
    return ttlMs === 0 ? undefined : { totalHits: count, resetTime: new Date(Date.now() + Math.min(ttlMs, this.windowMs)) }
  }

  increment (key) {
    const { count, ttlMs } = this.#counters.add(key, 1, this.windowMs)
    return { totalHits: count, resetTime: new Date(Date.now() + Math.min(ttlMs, this.windowMs)) }
  }

  decrement (key) {
    this.#counters.add(key, -1, this.windowMs)
  }

  resetKey (key) {
    this.#counters.reset(key)
  }

  resetAll () {
    this.#counters.reset()
  }

  shutdown () {
    this.#counters.close()
  }
}

exports.ShmlimitStore = ShmlimitStore
