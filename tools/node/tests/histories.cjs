// histories: random histories, in which each call gets the same answer of our store as of the front-end's own in memory.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const fs = require('node:fs')
const { setImmediate: turn } = require('node:timers/promises')
const { MemoryStore } = require('express-rate-limit')
const { RateLimiterMemory } = require('rate-limiter-flexible')
const { ShmlimitStore } = require('shmlimit/express-rate-limit')
const { RateLimiterShmlimit } = require('shmlimit/rate-limiter-flexible')
const { ok, done } = require('./tap.cjs')

const segment = process.env.SEGMENT
const HISTORIES = 40
const STEPS = 60
let seed = Number(process.env.SEED || Math.floor(Math.random() * 2 ** 31))
console.log(`# SEED=${seed}`)

// A number below n, by a linear congruence: its upper bits are used.
function draw (n) {
  seed = (seed * 1103515245 + 12345) % 2 ** 31
  return Math.floor(seed / 2 ** 31 * n)
}

// Time passes for all clocks of this process. Timers of the front-ends run.
let movedS = 0
async function move (seconds) {
  movedS += seconds
  const file = process.env.FAKETIME_TIMESTAMP_FILE
  fs.writeFileSync(`${file}.new`, `+${movedS.toFixed(3)}s\n`)
  fs.renameSync(`${file}.new`, file)
  await turn()
  await turn()
}

// Times are whole seconds: what lasts a little longer is the same.
const seconds = (ms) => Math.round(ms / 1000)

async function same (title, begin, call, longest = 4) {
  for (let history = 0; history < HISTORIES; history++) {
    await move(1000)
    const both = begin(history)
    const told = []
    const begun = Date.now() - movedS * 1000
    for (let i = 0; i < STEPS; i++) {
      if (draw(5) < 2) await move(draw(longest) + 0.003)
      const late = () => Date.now() - movedS * 1000 - begun > 300
      if (late()) break
      const drawn = [draw(10), 'ab'[draw(2)], 1 + draw(3)]
      const answers = []
      for (const one of both) answers.push(JSON.stringify(await call(one, ...drawn)))
      if (late()) break // on a busy machine
      told.push([...drawn, ...answers].join(' '))
      if (answers[0] !== answers[1]) {
        console.log(`# history ${history}:\n# ${told.slice(-12).join('\n# ')}`)
        return ok(false, title)
      }
    }
  }
  ok(true, title)
}

async function express () {
  const windowMs = 3000
  await same('express-rate-limit: over any history the store answers like express-rate-limit\'s own', (history) => {
    const both = [new ShmlimitStore({ segment, rule: `e${history % 4}` }), new MemoryStore()]
    for (const store of both) store.init({ windowMs })
    both[0].resetAll()
    return both
  }, async (store, which, key) => {
    if (which === 0) return store.resetKey(key)
    // What is over stays in memory until a timer ends it.
    const got = await store.get(key)
    const hits = got === undefined || got.resetTime <= Date.now() ? 0 : got.totalHits
    if (which === 1) return hits
    if (which === 2 && hits > 0) return store.decrement(key)
    const { totalHits, resetTime } = await store.increment(key)
    return [totalHits, seconds(resetTime - Date.now())]
  })
}

async function flexible () {
  const options = { points: 4, duration: 3 }
  for (const more of [{}, { blockDuration: 5 }]) {
    await same(`rate-limiter-flexible: over any history the limiter answers like its own in memory ${JSON.stringify(more)}`, (history) =>
      [new RateLimiterShmlimit({ segment, rule: `f${history % 4}`, keyPrefix: `${history}`, ...options, ...more }), new RateLimiterMemory({ ...options, ...more })],
    async (limiter, which, key, n) => {
      const figures = (res) => res === null ? null : [res.consumedPoints, res.remainingPoints, seconds(res.msBeforeNext)]
      switch (which) {
        case 0: return limiter.delete(key)
        case 1: return figures(await limiter.get(key))
        case 2: return figures(await limiter.penalty(key, n))
        case 3: return (await limiter.get(key))?.consumedPoints > n ? figures(await limiter.reward(key, n)) : null
        case 4: return figures(await limiter.block(key, n))
        case 5: return figures(await limiter.set(key, n, n))
        default: return limiter.consume(key, n).then(figures, (refused) => { if (refused instanceof Error) throw refused; return ['refused', ...figures(refused)] })
      }
    })
  }
}

async function fastify () {
  const { shmlimitStore } = require('shmlimit/fastify')
  const LocalStore = require('@fastify/rate-limit/store/LocalStore.js')
  for (const continueExceeding of [false, true]) {
    await same(`@fastify/rate-limit: over any history the store answers like its own in memory, continueExceeding ${continueExceeding}`, (history) =>
      [new (shmlimitStore({ segment, rule: `l${history % 4}` }))({ continueExceeding }, `${history}/`), new LocalStore(continueExceeding, false)],
    (store, which, key) => new Promise((resolve, reject) => {
      store.incr(key, (error, { current, ttl }) => error ? reject(error) : resolve([current, seconds(ttl)]), 3000, 4)
    }))
  }
}

// In memory nest forgets each request by itself: so nothing passes, or all that can be over is over.
async function nest () {
  require('reflect-metadata')
  const { ThrottlerStorageService } = require('@nestjs/throttler')
  const { ShmlimitThrottlerStorage } = require('shmlimit/nestjs')
  for (const blockMs of [3000, 1000, 7000]) {
    let key, looks
    await same(`@nestjs/throttler: over any history the storage answers like its own in memory, blockDuration ${blockMs}`, (history) => {
      key = `${blockMs}/${history}`
      looks = 0
      return [new ShmlimitThrottlerStorage({ segment, rule: 'n' }), new ThrottlerStorageService()]
    }, async (storage, which) => {
      if (looks++ % 2 === 0 && which === 0) await move(10)
      const { totalHits, timeToExpire, isBlocked, timeToBlockExpire } = await storage.increment(key, 3000, 4, blockMs, 'default')
      return isBlocked ? ['blocked', timeToBlockExpire] : [totalHits, timeToExpire]
    }, 0)
  }
}

express().then(flexible).then(fastify).then(nest).then(done)
