// What a decision costs in Node: rows of "figure<TAB>nanoseconds".
//
//	SHMLIMIT=build/node node tools/node/bench/take.mjs NAME SEGMENT SECONDS
//
// SPDX-License-Identifier: BSD-2-Clause
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { Limiter, Gate } = require(process.env.SHMLIMIT)
const { limit } = require(`${process.env.SHMLIMIT}/middleware.js`)
const { ShmlimitStore } = require(`${process.env.SHMLIMIT}/stores/express-rate-limit.js`)
const { shmlimitStore } = require(`${process.env.SHMLIMIT}/stores/fastify.js`)
const [name, segment, seconds] = process.argv.slice(2)
const ROUNDS = 50
const HOUR = 3600e3

function onceNs (call, calls) {
  const begun = process.cpuUsage()
  for (let i = 0; i < calls; i++) call(i)
  const { user, system } = process.cpuUsage(begun)
  return (user + system) * 1000 / calls
}

// The least of some rounds, less what is measured without the limit.
function row (figure, call, without = 0) {
  let calls = 100
  while (onceNs(call, calls) * calls < Number(seconds) / ROUNDS * 1e9) calls *= 2
  let least = Infinity
  for (let i = 0; i < ROUNDS; i++) least = Math.min(least, onceNs(call, calls))
  console.log(`${name}: ${figure}\t${(least - without).toFixed(1)}`)
  return least
}

const limiter = Limiter.create(segment, { slots: 1024 })
try {
  const rule = limiter.ruleSet('client', { capacity: 2 ** 40, refill: 1e9, periodMs: 1000 })
  limiter.ruleSet('count', { algorithm: 'counter', capacity: 2 ** 26 - 1 })
  const gate = new Gate(`segment=${segment} rule=client`)
  const quiet = new Gate(`segment=${segment} rule=client fields=denied`)
  const express = new ShmlimitStore({ segment })
  express.init({ windowMs: HOUR })
  const fastify = new (shmlimitStore({ segment }))({})
  const middleware = limit(gate)
  const req = { ip: '192.168.100.1', headers: {}, socket: { remoteAddress: '192.168.100.1' } }
  const res = { setHeader () {} }
  const nothing = () => {}

  row('take', () => limiter.take(rule, 'user:42'), row('a call', () => nothing()))
  row("take, by the rule's name", () => limiter.take('client', 'user:42'))
  row('take, a key that was just made', (i) => limiter.take(rule, `user:${i & 255}`))
  row('take, what is left', () => { limiter.take(rule, 'user:42'); return limiter.result.remaining })
  row('count', () => limiter.count('count', 'user:42', 1, HOUR))
  row('gate', () => quiet.ask('192.168.100.1'))
  row('gate, fields', () => gate.ask('192.168.100.1'))
  row('gate, fields as strings', () => { gate.ask('192.168.100.1'); return gate.answer.fields })
  row('middleware', () => middleware(req, res, nothing))
  row('store of express-rate-limit', () => express.increment('192.168.100.1'))
  row('store of @fastify/rate-limit', () => fastify.incr('192.168.100.1', nothing, HOUR, 10))
} finally {
  Limiter.destroy(segment)
}
