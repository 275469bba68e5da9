// rules: what pacers share: rules of one segment, both of which are created where they are missing. The segment is reopened when
// it was replaced, which is looked at once a second.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { open, toKey } = require('../stores/counters.js')

const LOOK_EVERY_MS = 1000
const NAME_MAX = 63
const OPTIONS = ['slots', 'mode', 'group', 'owner']
// A reservation is at most so far ahead. What would wait for longer asks again.
const AHEAD_MS = 3600e3

// A name that a rule can have, made of any text.
function ruleName (text, suffix = '') {
  return (String(text).replace(/[^A-Za-z0-9._:@+-]/g, '_').slice(suffix.length - NAME_MAX) || '_') + suffix
}

class Rules {
  #limiter
  #looked = 0
  #ensured = new Map() // rules by their names
  #options

  constructor ({ segment, ...options }) {
    if (typeof segment !== 'string') throw new TypeError('a pacer needs { segment: NAME }')
    const unknown = Object.keys(options).find((name) => options[name] !== undefined && !OPTIONS.includes(name))
    if (unknown !== undefined) throw new TypeError(`${unknown} is not an option of a segment; there are ${OPTIONS.join(', ')}`)
    this.segment = segment
    this.#options = options
    this.limiter()
  }

  // The segment, open.
  limiter () {
    const now = performance.now()
    if (this.#limiter === undefined || now - this.#looked >= LOOK_EVERY_MS) {
      if (this.#limiter?.gone()) this.close()
      this.#limiter ??= open(this.segment, { ...this.#options, rules: 1024 })
      this.#looked = now
    }
    return this.#limiter
  }

  // Call a method of Limiter with a rule, which is set if it is missing, or if the program before this one brought another. True or a
  // place: allowed; `limiter.result` and `limiter.counted` have the figures until the next call.
  use (call, name, rule, key, ...args) {
    const limiter = this.limiter()
    if (this.#ensured.get(name) !== rule) this.#ensure(limiter, name, rule)
    try {
      return limiter[call](name, toKey(key), ...args)
    } catch (error) {
      if (error.code !== 'ESRCH' && error.code !== 'EOPNOTSUPP') throw error
    }
    this.#ensure(limiter, name, rule)
    return limiter[call](name, toKey(key), ...args)
  }

  #ensure (limiter, name, rule) {
    limiter.ruleEnsure(name, rule)
    this.#ensured.set(name, rule)
  }

  close () {
    this.#limiter?.close()
    this.#limiter = undefined
    this.#ensured.clear()
  }
}

exports.Rules = Rules
exports.OPTIONS = ['segment', ...OPTIONS]
exports.ruleName = ruleName
exports.AHEAD_MS = AHEAD_MS
