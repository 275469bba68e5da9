// A store for @fastify/rate-limit 9 and later. The plugin makes the store itself, from the class that it is given.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { Counters, LONGEST_MS } = require('./counters.js')

function shmlimitStore (options = {}) {
  const counters = new Counters(options, { rule: 'fastify-rate-limit', limit: '' })

  return class ShmlimitStore {
    #options
    #prefix

    constructor (options, prefix = '') {
      counters.only(!options.continueExceeding && !options.exponentialBackoff, 'continueExceeding, exponentialBackoff')
      this.#options = options
      this.#prefix = prefix
    }

    incr (key, callback, timeWindow, max) {
      if (counters.shared) {
        // What is refused counts only towards a ban.
        const { ban = -1 } = this.#options
        counters.addEverywhere(this.#prefix + key, 1, timeWindow, ban >= 0 ? max + ban + 1 : max).then(
          ({ count, ttlMs }) => callback(null, { current: count, ttl: Math.floor(ttlMs) }), (error) => callback(error, null))
        return
      }
      const { continueExceeding, exponentialBackoff } = this.#options
      let current, ttl
      try {
        const counted = counters.add(this.#prefix + key, 1, timeWindow)
        current = counted.count
        ttl = Math.floor(counted.ttlMs)
        if (current > max && (continueExceeding || exponentialBackoff)) {
          ttl = continueExceeding ? timeWindow : Math.min(timeWindow * 2 ** (current - max - 1), LONGEST_MS)
          counters.restart(this.#prefix + key, ttl)
        }
      } catch (error) {
        callback(error, null)
        return
      }
      callback(null, { current, ttl })
    }

    read (key, callback) {
      let current, ttl
      try {
        const counted = counters.read(this.#prefix + key)
        current = counted.count
        ttl = Math.floor(counted.ttlMs)
      } catch (error) {
        callback(error, null)
        return
      }
      callback(null, { current, ttl })
    }

    // A route with limits of its own has counts of its own.
    child (options) {
      const { method = '', url = '' } = options.routeInfo ?? {}
      return new ShmlimitStore(options, `${this.#prefix}${method}${url}-`)
    }
  }
}

exports.shmlimitStore = shmlimitStore
