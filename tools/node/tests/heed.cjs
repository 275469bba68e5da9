// heed: a pause, and a server that says "not now": what its answer means, and that all who ask it heed it.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const http = require('node:http')
const library = process.env.SHMLIMIT
const { Limiter } = require(library)
const { Pacer } = require(`${library}/pace/pacer.js`)
const { heed, retryAfterMs } = require(`${library}/pace/heed.js`)
const { ok, is, done } = require('./tap.cjs')

const segment = process.env.SEGMENT
const WINDOW_MS = 1e3
const WORKERS = 4
const answer = (status, headers) => new Response(null, { status, headers })
const date = (ms) => new Date(ms).toUTCString()

function answers () {
  const at = (ms) => String(Math.floor((Date.now() + ms) / 1e3))
  is(retryAfterMs(answer(429, { 'Retry-After': '30' })), 30e3, 'Retry-After counts with 429, in seconds')
  is(retryAfterMs(answer(503, { 'Retry-After': '7' })), 7e3, 'Retry-After counts with 503')
  is(retryAfterMs(answer(200, { 'Retry-After': '30' })), 0, 'Retry-After counts with no other status')
  is(retryAfterMs(answer(429, { 'Retry-After': date(1e12 + 30e3), Date: date(1e12) })), 30e3, 'Retry-After may be a date, which is compared with the server\'s')
  is(retryAfterMs(answer(429, { 'Retry-After': date(1e12), Date: date(1e12 + 30e3) })), 0, 'a date that is past is over')
  is(retryAfterMs(answer(200, { RateLimit: '"a";r=3;t=12, "b";r=0;t=5' })), 5e3, 'the RateLimit field counts where nothing is left')
  is(retryAfterMs(answer(200, { RateLimit: '"a";r=3;t=12' })), 0, 'the RateLimit field does not count where something is left')
  is(retryAfterMs(answer(200, { RateLimit: 'limit=100, remaining=0, reset=50' })), 50e3, 'the RateLimit field of draft 7 counts where nothing is left')
  is(retryAfterMs(answer(200, { RateLimit: 'limit=100, remaining=10, reset=50' })), 0, 'the RateLimit field of draft 7 does not count where something is left')
  is(retryAfterMs(answer(200, { 'RateLimit-Remaining': '0', 'RateLimit-Reset': '9' })), 9e3, 'the fields before it count, too')
  const until = retryAfterMs(answer(200, { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': at(3e6) }))
  ok(until > 2.9e6 && until <= 3e6, 'a reset may be a time')
  is(retryAfterMs(answer(429)), 1e3, 'a refusal that says nothing is a second')
  is(retryAfterMs(answer(429, { 'Retry-After': 'soon' }), { defaultMs: 5 }), 5, 'what cannot be read is the default')
  is(['-1', '1e3', '1/2', ''].map((text) => retryAfterMs(answer(429, { 'Retry-After': text }), { defaultMs: 5 })), [5, 5, 5, 5], 'nor is a number a date')
  is(retryAfterMs(answer(429, { 'Retry-After': '1.5' })), 1500, 'seconds may have a fraction')
  is(retryAfterMs(answer(429, { 'Retry-After': 'Sun Sep  9 01:47:10 2001', Date: date(1e12) })), 30e3, 'a date in the form of asctime is of GMT')
  ok(retryAfterMs(answer(429, { 'Retry-After': date(Date.now() + 60e3), Date: 'today' })) > 30e3, 'without a date of the server the clock here counts')
  is(retryAfterMs(answer(200)), 0, 'any other answer asks for nothing')
}

async function pauses (limiter) {
  is(limiter.pause('r', 'k', 60e3), true, 'a key is paused')
  is(limiter.take('r', 'k'), false, 'a paused key is denied')
  ok(limiter.result.retryAfterMs > 50e3 && limiter.result.retryAfterMs < 61e3, 'the denial says how long the pause lasts')
  limiter.pause('r', 'k', 1)
  ok(limiter.paused('r', 'k') > 50e3, 'a longer pause stays')
  limiter.pause('r', 'k', 0)
  is([limiter.paused('r', 'k'), limiter.take('r', 'k')], [0, true], 'a pause of 0 ends it')
  is(heed(limiter, 'r', 'k', answer(200)), 0, 'an answer that asks for nothing pauses nothing')
  is([429, 200].map((status) => heed({ pause: () => false }, 'r', 'k', answer(status))), [null, 0], 'where there is no pause, the caller is told')
  limiter.take('r', 'fresh')
  const before = limiter.result.retryAfterMs
  is([limiter.paused('r', 'k') > 0, limiter.result.retryAfterMs], [false, before], 'a look at a pause changes no result')
  limiter.pause('r', 'looked', 60e3)
  is([limiter.paused('r', 'looked') > 0, limiter.result.retryAfterMs], [true, before], 'a look at a pause that lasts changes no result')
  const ms = heed(limiter, 'r', 'k', answer(429, { 'Retry-After': '30' }))
  ok(ms >= 30e3 && ms <= 33e3 && limiter.paused('r', 'k') > 0, 'an answer pauses the key, for a little longer')
  is(heed(limiter, 'r', 'k', answer(429, { 'Retry-After': '99999' }), { mostMs: 60e3, jitter: 0 }), 60e3, 'no answer pauses for longer than it may')
}

async function pacer () {
  const pacer = new Pacer('5/s burst 1', { segment, rule: 'pacer', slots: 64 })
  const begun = Date.now()
  await pacer.acquire()
  // The second is due in 0.2 s.
  const second = pacer.acquire().then(() => Date.now())
  pacer.pause(600)
  ok(await second >= begun + 590, 'a call that waits goes on after the pause')
  pacer.close()
}

// After its first three requests it refuses all for a while, and says so.
async function refuses (limiter) {
  const seen = []
  let from = Infinity
  const server = http.createServer((request, response) => {
    const now = performance.now()
    seen.push([now, request.url])
    if (seen.length === 3) from = now
    const refused = now >= from && now < from + WINDOW_MS
    response.writeHead(refused ? 429 : 200, refused ? { 'Retry-After': WINDOW_MS / 1e3 } : {}).end()
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const pacers = Array.from({ length: WORKERS }, () => new Pacer('1000/s burst 50', { segment, rule: 'remote', slots: 64 }))
  await Promise.all(pacers.map(async (pacer, worker) => {
    for (let i = 0; i < 8; i++) {
      await pacer.acquire()
      const response = await fetch(`http://127.0.0.1:${server.address().port}/${worker}`)
      await response.arrayBuffer()
      const ms = retryAfterMs(response)
      if (ms > 0) pacer.pause(ms)
    }
    pacer.close()
  }))
  server.closeAllConnections?.()
  server.close()
  const late = seen.filter(([at]) => at > from && at < from + WINDOW_MS).map(([, url]) => url)
  is(late.length, new Set(late).size, 'of each worker at most the request in flight comes while the server refuses')
  is(seen.length, 8 * WORKERS, 'all go on after it')
}

async function main () {
  const limiter = Limiter.create(segment, { slots: 64 })
  limiter.ruleSet('r', { capacity: 50, refill: 1000, periodMs: 1e3, maxWaitMs: 1e4 })
  answers()
  await pauses(limiter)
  await pacer()
  await refuses(limiter)
  limiter.close()
  Limiter.destroy(segment)
  done()
}

main()
