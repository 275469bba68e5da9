// fronts: each front-end serves through our store, and through its own, which is in each worker's memory.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const cluster = require('node:cluster')
const http = require('node:http')
const { once } = require('node:events')
const { execFile } = require('node:child_process')
const { promisify } = require('node:util')

const segment = process.env.SEGMENT
const HOUR = 3600e3
const LIMIT = 10
const REQUESTS = 40

const client = (req) => req.headers['x-client']
const listen = (app, path) => new Promise((resolve) => app.listen(path, resolve))

const fronts = {
  'express-rate-limit': async (ours) => {
    const express = require('express')
    const { rateLimit } = require('express-rate-limit')
    const options = { windowMs: HOUR, limit: LIMIT, keyGenerator: client }
    return (path) => {
      const { ShmlimitStore } = require('shmlimit/express-rate-limit')
      const app = express()
      app.use(rateLimit(ours ? { ...options, store: new ShmlimitStore({ segment }) } : options))
      app.get('/', (req, res) => res.send('page'))
      return listen(app, path)
    }
  },
  '@fastify/rate-limit': async (ours) => {
    const fastify = require('fastify')()
    const plugin = require('@fastify/rate-limit')
    const options = { max: LIMIT, timeWindow: HOUR, keyGenerator: client }
    return async (path) => {
      const { shmlimitStore } = require('shmlimit/fastify')
      await fastify.register(plugin, ours ? { ...options, store: shmlimitStore({ segment }) } : options)
      fastify.get('/', async () => 'page')
      await fastify.listen({ path })
    }
  },
  'rate-limiter-flexible': async (ours) => {
    const { RateLimiterMemory } = require('rate-limiter-flexible')
    const options = { points: LIMIT, duration: HOUR / 1000 }
    return (path) => {
      const { RateLimiterShmlimit } = require('shmlimit/rate-limiter-flexible')
      const limiter = ours ? new RateLimiterShmlimit({ segment, ...options }) : new RateLimiterMemory(options)
      return listen(http.createServer((req, res) => {
        limiter.consume(client(req)).then(() => res.end('page'), (refused) => {
          res.statusCode = refused instanceof Error ? 500 : 429
          res.end()
        })
      }), path)
    }
  },
  '@nestjs/throttler': async (ours) => {
    require('reflect-metadata')
    const { Module, Controller, Get } = require('@nestjs/common')
    const { APP_GUARD, NestFactory } = require('@nestjs/core')
    const { ThrottlerGuard, ThrottlerModule } = require('@nestjs/throttler')
    return async (path) => {
      const { ShmlimitThrottlerStorage } = require('shmlimit/nestjs')
      class Page { get () { return 'page' } }
      Get()(Page.prototype, 'get', Object.getOwnPropertyDescriptor(Page.prototype, 'get'))
      Controller()(Page)
      class App {}
      const throttlers = [{ ttl: HOUR, limit: LIMIT, getTracker: client }]
      Module({
        imports: [ThrottlerModule.forRoot(ours ? { throttlers, storage: new ShmlimitThrottlerStorage({ segment }) } : { throttlers })],
        controllers: [Page],
        providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }]
      })(App)
      await (await NestFactory.create(App, { logger: false })).listen(path)
    }
  }
}

const socket = (name, ours) => `${process.env.TMP}/${Object.keys(fronts).indexOf(name)}${ours ? 'ours' : 'own'}.sock`

async function work () {
  const skipped = {}
  for (const name of Object.keys(fronts)) {
    for (const ours of [false, true]) {
      let serve
      try {
        serve = await fronts[name](ours)
      } catch (error) {
        skipped[name] = error.message.split('\n')[0]
        continue
      }
      await serve(socket(name, ours))
    }
  }
  process.send(skipped)
}

// Each: whether a request of a customer is admitted, whose limit or cost is that of its plan.
const plan = (n) => n % 7
const ofCustomers = {
  'express-rate-limit': async () => {
    const { rateLimit } = require('express-rate-limit')
    const { ShmlimitStore } = require('shmlimit/express-rate-limit')
    const store = new ShmlimitStore({ segment, rule: 'plans' })
    const options = { windowMs: HOUR, store, keyGenerator: (req) => req.customer, limit: (req) => req.plan, legacyHeaders: false, validate: false }
    const middleware = rateLimit({ ...options, handler: (req, res) => res.end(false) })
    return (n) => new Promise((resolve, reject) => {
      middleware({ customer: `c${n}`, plan: plan(n), app: { get () {} }, headers: {} }, { end: resolve, setHeader () {} }, (error) => error ? reject(error) : resolve(true))
    })
  },
  '@fastify/rate-limit': async () => {
    const { shmlimitStore } = require('shmlimit/fastify')
    const fastify = require('fastify')()
    const client = (req) => req.headers['x-client']
    await fastify.register(require('@fastify/rate-limit'), {
      store: shmlimitStore({ segment, rule: 'fastify' }), timeWindow: HOUR, keyGenerator: client, max: (req, key) => plan(Number(key))
    })
    fastify.get('/', async () => 'page')
    return async (n) => {
      const { statusCode } = await fastify.inject({ url: '/', headers: { 'x-client': String(n) } })
      if (statusCode !== 200 && statusCode !== 429) throw new Error(`answered ${statusCode}`)
      return statusCode === 200
    }
  },
  'rate-limiter-flexible': async () => {
    const { RateLimiterShmlimit } = require('shmlimit/rate-limiter-flexible')
    const limiter = new RateLimiterShmlimit({ segment, points: 12, duration: HOUR / 1000, rule: 'points' })
    return (n) => limiter.consume(`c${n}`, plan(n)).then(() => true, (refused) => { if (refused instanceof Error) throw refused; return false })
  },
  '@nestjs/throttler': async () => {
    require('reflect-metadata')
    const { Reflector } = require('@nestjs/core')
    const { ThrottlerGuard, ThrottlerException } = require('@nestjs/throttler')
    const { ShmlimitThrottlerStorage } = require('shmlimit/nestjs')
    const storage = new ShmlimitThrottlerStorage({ segment, rule: 'nest' })
    const request = (context) => context.switchToHttp().getRequest()
    const throttlers = [{ ttl: HOUR, limit: (context) => plan(request(context).n), getTracker: (req) => `c${req.n}` }]
    const guard = new ThrottlerGuard({ throttlers, skipIf: () => false }, storage, new Reflector())
    const handler = () => {}
    await guard.onModuleInit()
    return (n) => {
      const http = { getRequest: () => ({ n, headers: {} }), getResponse: () => ({ header () {} }) }
      const context = { switchToHttp: () => http, getHandler: () => handler, getClass: () => Object, getArgs: () => [] }
      return guard.canActivate(context).catch((error) => { if (error instanceof ThrottlerException) return false; throw error })
    }
  }
}

// In a process of its own: one request of each of 10,000 customers. Prints who was admitted.
async function customers (name) {
  const admits = await ofCustomers[name]()
  const admitted = []
  for (let n = 0; n < 10000; n++) admitted.push(await admits(n) ? 1 : 0)
  process.stdout.write(admitted.join(''))
}

if (process.argv[2] === 'customers') {
  customers(process.argv[3]).catch((error) => { console.error(error); process.exit(1) })
  return
}

if (cluster.isWorker) {
  work().catch((error) => { console.error(error); process.exit(1) })
  return
}

const { ok, is, done } = require('./tap.cjs')

async function start () {
  const worker = cluster.fork()
  const ended = once(worker, 'exit').then(() => { throw new Error('a worker ended by itself') })
  ended.catch(() => {})
  const [skipped] = await Promise.race([once(worker, 'message'), ended])
  return { worker, skipped }
}

function get (path) {
  return new Promise((resolve, reject) => {
    http.get({ socketPath: path, agent: false, headers: { 'X-Client': '203.0.113.9' } }, (res) => {
      res.resume().on('end', () => resolve(res.statusCode))
    }).on('error', reject)
  })
}

async function main () {
  const workers = await Promise.all([1, 2, 3, 4].map(start))
  const { skipped } = workers[0]
  const served = Object.keys(fronts).filter((name) => !(name in skipped)).flatMap((name) => [true, false].map((ours) => ({ name, ours, codes: [] })))
  const ask = async (from, to) => {
    for (const { name, ours, codes } of served) for (let i = from; i < to; i++) codes.push(await get(socket(name, ours)))
  }
  await ask(0, LIMIT - 2)
  workers[0].worker.process.kill('SIGKILL')
  await once(workers[0].worker, 'exit')
  workers[0] = await start()
  await ask(LIMIT - 2, REQUESTS)

  for (const { name, ours, codes } of served) {
    if (ours) is(codes, codes.map((_, i) => i < LIMIT ? 200 : 429), `${name}: four workers, of which one is killed, admit exactly the limit`)
    else ok(codes.filter((code) => code === 200).length > LIMIT, `${name}: with its own store in memory they admit more`)
  }
  // Four processes ask once; the points of rate-limiter-flexible are a price, of 12 that each has.
  const limit = (n) => Math.min(plan(n), 4)
  const bought = (n) => plan(n) > 0 ? Math.min(Math.floor(12 / plan(n)), 4) : 4
  for (const name of Object.keys(ofCustomers).filter((name) => !(name in skipped))) {
    const told = await Promise.all([1, 2, 3, 4].map(() => promisify(execFile)(process.execPath, [__filename, 'customers', name])))
    const found = Array.from({ length: 10000 }, (_, n) => told.reduce((sum, { stdout }) => sum + Number(stdout[n]), 0))
    is(found, found.map((_, n) => name === 'rate-limiter-flexible' ? bought(n) : limit(n)), `${name}: 10,000 customers with plans of their own are exact over four processes`)
  }
  for (const name of Object.keys(skipped)) ok(true, `${name} # SKIP ${skipped[name]}`)
  await Promise.all(workers.map(({ worker }) => { worker.process.kill(); return once(worker, 'exit') }))
  done()
}

main()
