// RateLimiter and TokenBucket with the interface of limiter 4, for one limit of all processes of the host.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { Pacer } = require('./pacer.js')

const INTERVALS = { second: 1e3, sec: 1e3, minute: 60e3, min: 60e3, hour: 3600e3, hr: 3600e3, day: 86400e3 }

function toMs (interval) {
  const ms = INTERVALS[interval] ?? interval
  if (!(typeof ms === 'number' && ms > 0 && Number.isFinite(ms))) throw new RangeError(`interval: ${interval} must be milliseconds, or one of ${Object.keys(INTERVALS).join(', ')}`)
  return ms
}

function check (count, max) {
  if (!Number.isInteger(count) || count < 0) throw new RangeError(`${count} tokens: must be a whole number, 0 or more`)
  if (count > max) throw new RangeError(`${count} tokens: the limit is ${max}`)
}

// A limit of `max` tokens.
class Tokens {
  #pacer
  #max

  constructor (max, limit, options) {
    this.#max = max
    this.#pacer = new Pacer(limit, options)
  }

  async removeTokens (count, { signal } = {}) {
    check(count, this.#max)
    if (count > 0) await this.#pacer.acquire({ cost: count, signal })
    return this.getTokensRemaining()
  }

  tryRemoveTokens (count) {
    check(count, Infinity)
    return count <= this.#max && (count === 0 || this.#pacer.tryAcquire({ cost: count }))
  }

  getTokensRemaining () {
    return this.#pacer.peek().remaining
  }

  // Not of limiter's: when a program has done with it.
  close () {
    this.#pacer.close()
  }
}

// In no stretch of an interval more than tokensPerInterval.
class RateLimiter extends Tokens {
  #atOnce

  constructor ({ tokensPerInterval, interval, fireImmediately = false, rule = 'limiter', ...options }) {
    super(tokensPerInterval, { algorithm: 'window', capacity: tokensPerInterval, periodMs: toMs(interval) }, { ...options, rule })
    this.#atOnce = fireImmediately
  }

  async removeTokens (count, options) {
    if (!this.#atOnce) return super.removeTokens(count, options)
    return this.tryRemoveTokens(count) ? this.getTokensRemaining() : -1
  }
}

// A bucket, which is full when it begins.
class TokenBucket extends Tokens {
  constructor ({ bucketSize, tokensPerInterval, interval, parentBucket, rule = 'limiter-bucket', ...options }) {
    if (parentBucket !== undefined) throw new TypeError('parentBucket: buckets have no parents here; a Gate takes from several limits, all or none')
    super(bucketSize, { capacity: bucketSize, refill: tokensPerInterval, periodMs: toMs(interval) }, { ...options, rule })
  }
}

exports.RateLimiter = RateLimiter
exports.TokenBucket = TokenBucket
