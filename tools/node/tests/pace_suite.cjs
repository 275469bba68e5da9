// pace_suite: Bottleneck for its own tests, with an id for each limiter; and, as a program, two processes that share limits.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { fork } = require('node:child_process')
const { once } = require('node:events')
const Bottleneck = require('shmlimit/bottleneck')

const segment = process.env.SEGMENT

if (require.main !== module) {
  let n = 0
  const named = (options) => typeof options === 'object' ? { segment, id: `${process.pid}-${++n}`, ...options } : options
  class Named extends Bottleneck {
    constructor (options = {}, ...more) {
      super(named(options), ...more)
    }
  }
  Named.default = Named
  Named.Group = Named.prototype.Group = class extends Bottleneck.Group {
    constructor (options = {}) {
      super(named(options))
      this.Bottleneck = Named
    }
  }
  module.exports = Named
  return
}

const { ok, is, thrown, done } = require('./tap.cjs')
const { Limiter } = require('shmlimit')

const HOUR = 3600e3
const make = (id, options) => new Bottleneck({ segment, id, ...options })

if (process.argv[2]) {
  const [, , id, options, n] = process.argv
  const limiter = make(id, JSON.parse(options))
  const times = []
  const jobs = Array.from({ length: n }, () => limiter.schedule(async () => {
    times.push([Date.now()])
    process.send('begun')
    await new Promise((resolve) => setTimeout(resolve, 5))
    times.at(-1).push(Date.now())
  }))
  if (id === 'killed') limiter.on('executing', () => setInterval(() => {}, HOUR))
  Promise.all(jobs).then(() => process.send(times, () => process.disconnect()))
  return
}

// The begin and end of each job of two processes, by their begins.
async function both (id, options, n) {
  const children = [1, 2].map(() => fork(__filename, [id, JSON.stringify(options), n]))
  const times = await Promise.all(children.map(async (child) => {
    let last
    child.on('message', (message) => { last = message })
    await once(child, 'close')
    return last
  }))
  return times.flat().sort(([one], [other]) => one - other)
}

async function main () {
  const paced = await both('paced', { minTime: 100 }, 5)
  ok(paced.length === 10 && paced.at(-1)[0] - paced[0][0] >= 600, 'minTime: ten jobs of two processes begin one after another')
  const alone = await both('alone', { maxConcurrent: 1 }, 5)
  ok(alone.length === 10 && alone.every(([, end], i) => i === 9 || alone[i + 1][0] >= end), 'maxConcurrent: jobs of two processes do not run at once')
  const few = make('few', { reservoir: 5 })
  const children = [1, 2].map(() => fork(__filename, ['few', JSON.stringify({ reservoir: 5 }), 5]))
  const closed = children.map((child) => once(child, 'close'))
  let begun = 0
  children.forEach((child) => child.on('message', (said) => { begun += said === 'begun' }))
  const reached = async (n) => { while (begun < n) await new Promise((resolve) => setTimeout(resolve, 10)) }
  await reached(5)
  is([await few.currentReservoir(), await few.check()], [0, false], 'reservoir: two processes empty one')
  is(await few.incrementReservoir(2), 2, 'reservoir: jobs are given back')
  is(await few.incrementReservoir(9).catch((error) => error.message),
    'incrementReservoir(9): a reservoir is never above its setting; updateSettings({ reservoir }) changes that', 'reservoir: no more is given back than it had')
  // What a reservoir holds is set, not added to: the two must be gone.
  await reached(7)
  await few.updateSettings({ reservoir: 3 })
  await Promise.all(closed)
  is([begun, await few.currentReservoir() <= 3], [10, true], 'reservoir: jobs that wait begin when there is something in it')

  const child = fork(__filename, ['killed', JSON.stringify({ maxConcurrent: 1 }), 1])
  await once(child, 'message')
  const other = make('killed', { maxConcurrent: 1 })
  child.kill('SIGKILL')
  is(await other.schedule(async () => 'ran'), 'ran', 'maxConcurrent: the place of a process that was killed is free')

  // Longer than a timer can be: one that overflows is due at once, and said.
  let warned = 0
  process.on('warning', () => { warned++ })
  const calm = make('calm', { minTime: 1 })
  const there = new Limiter(segment)
  await calm.schedule(async () => {})
  there.pause('calm.time', 'calm', 60 * 24 * HOUR)
  let ran = false
  const paused = calm.schedule(async () => { ran = true })
  await new Promise((resolve) => setTimeout(resolve, 300))
  is([ran, warned], [false, 0], 'a job waits while its key is paused')
  there.pause('calm.time', 'calm', 0)
  await paused
  ok(ran, 'a job goes on when a pause ends early')

  const heavy = make('heavy', { maxConcurrent: 3, minTime: 1 })
  const weights = []
  await Promise.all([2, 2, 1].map((weight) => heavy.schedule({ weight }, async () => weights.push([weight, await heavy.running()]))))
  is(weights.length === 3 && weights.every(([, running]) => running <= 3), true, 'a job of a weight holds as many places')
  is([await heavy.running(), await heavy.check(4)], [0, false], 'a job of a weight leaves its places')
  is([thrown(() => new Bottleneck({ segment })), thrown(() => new Bottleneck.Group({ segment })), thrown(() => make('a', { datastore: 'redis' })),
    thrown(() => make('a', { reservoir: 1, reservoirRefreshInterval: HOUR, reservoirRefreshAmount: 2 })), thrown(() => make('a', { maxConcurrent: 1.5 })),
    thrown(() => make('a', { reservoir: 1, reservoirRefreshInterval: HOUR, reservoirRefreshAmount: 1, reservoirIncreaseInterval: HOUR, reservoirIncreaseAmount: 1 }))].map((text) => text.replace(/^[^:]*: /, '')),
  ['the limiter needs { id: NAME }, which all processes say that share its limits', 'the group needs { id: NAME }, which all processes say that share its limits',
    "datastore: 'redis': the store is the segment", 'reservoir must be the same as reservoirRefreshAmount: it is full when it begins', 'maxConcurrent: 1.5 must be a whole number, 0 or more',
    'a reservoir has a refresh or an increase, not both'], 'what cannot be is refused')
  Limiter.destroy(segment)
  done()
}

main()
