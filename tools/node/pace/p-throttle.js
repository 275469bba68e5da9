// p-throttle 8's interface, for one limit of all processes of the host.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { Pacer } = require('./pacer.js')

const isWhole = (value) => Number.isInteger(value) && value >= 1

// strict: a window that slides. Otherwise one that begins with its first call.
function pThrottle ({ limit, interval, strict = false, signal, onDelay, weight, rule = 'p-throttle', ...options }) {
  if (!isWhole(limit)) throw new TypeError(`limit: ${limit} must be a whole number, 1 or more`)
  if (!(interval > 0 && Number.isFinite(interval))) throw new TypeError(`interval: ${interval} must be milliseconds, above 0`)
  if (weight !== undefined && typeof weight !== 'function') throw new TypeError('weight must be a function')
  signal?.throwIfAborted()
  const pacer = new Pacer({ algorithm: strict ? 'window' : 'counter', capacity: limit, periodMs: interval }, { ...options, rule })

  function cost (args) {
    const of = weight === undefined ? 1 : weight(...args)
    if (of !== 0 && !isWhole(of)) throw new TypeError(`weight: ${of} must be a whole number, 0 or more`)
    if (of > limit) throw new TypeError(`weight: ${of} is above the limit of ${limit}`)
    return of
  }

  function onTurn (asked, args) {
    // A signal ends the calls that wait when it aborts, and no later ones.
    const turn = pacer.acquire({ cost: asked, signal: signal?.aborted ? undefined : signal })
    try {
      onDelay?.(...args)
    } catch {}
    return turn
  }

  return (fn) => {
    const throttled = function (...args) {
      return new Promise((resolve, reject) => {
        const run = () => resolve(fn.apply(this, args))
        const asked = throttled.isEnabled ? cost(args) : 0
        if (asked === 0 || pacer.tryAcquire({ cost: asked })) return run()
        onTurn(asked, args).then(run).catch(reject)
      })
    }
    throttled.isEnabled = true
    Object.defineProperty(throttled, 'queueSize', { get: () => pacer.queued })
    return throttled
  }
}

module.exports = pThrottle
module.exports.default = pThrottle
