// A storage for @nestjs/throttler 6.
//
// One count says all. A client is blocked while its count is above the limit; the request that makes it so lets the count
// live for blockDuration from then on, and the requests after it add nothing.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { Counters } = require('./counters.js')

class ShmlimitThrottlerStorage {
  #counters

  constructor (options = {}) {
    this.#counters = new Counters(options, { rule: 'nestjs-throttler' }) // its keys have the handler's name
  }

  async increment (key, ttl, limit, blockDuration, throttlerName) {
    const name = `${key}:${throttlerName}`
    if (this.#counters.shared) {
      // Who is blocked is so until the window ends.
      this.#counters.only(!(blockDuration > 0) || blockDuration === ttl, 'a blockDuration that is not ttl')
      const { count, ttlMs } = await this.#counters.addEverywhere(name, 1, ttl, limit)
      const timeToExpire = Math.ceil(Math.min(ttlMs, ttl) / 1000)
      return { totalHits: count, timeToExpire, isBlocked: count > limit, timeToBlockExpire: count > limit ? timeToExpire : 0 }
    }
    const counted = this.#counters.add(name, 1, ttl, limit + 1)
    const totalHits = counted.count
    const isBlocked = totalHits > limit
    // A count may end some milliseconds late.
    let leftMs = Math.floor(Math.min(counted.ttlMs, isBlocked && blockDuration > 0 ? blockDuration : ttl))

    if (isBlocked && counted.applied > 0 && blockDuration > 0) {
      this.#counters.restart(name, blockDuration)
      leftMs = blockDuration
    }
    const seconds = Math.ceil(leftMs / 1000)
    return { totalHits, timeToExpire: seconds, isBlocked, timeToBlockExpire: isBlocked ? seconds : 0 }
  }

  onApplicationShutdown () {
    this.#counters.close()
  }
}

exports.ShmlimitThrottlerStorage = ShmlimitThrottlerStorage
