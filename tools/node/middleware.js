// A middleware for Express, Connect, Polka, and servers of node:http: the limits of a gate in front of what follows.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { STATUS_CODES } = require('node:http')
const { Gate } = require('./index.js')

// That proxies write.
const FIELDS = ['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'CF-Connecting-IP'].map((field) => [field.toLowerCase(), field])
// How many requests are looked at. Then it is one in a hundred: what comes so late is rare.
const LOOKS = 10000
const ADVICE = "app.set('trust proxy', ...) names proxies in Express, and keys: (req) => ... elsewhere"

function has (keys, peer) {
  return [keys].flat().some((key) => (key?.key ?? key) === peer)
}

function address (req) {
  return req.ip ?? req.socket.remoteAddress
}

// A field that several limits have is sent once for each.
function send (res, fields) {
  const values = new Map()
  for (const [name, value] of fields) values.set(name, values.has(name) ? [values.get(name), value].flat() : value)
  for (const [name, value] of values) res.setHeader(name, value)
}

function refuse (res, status) {
  res.statusCode = status
  res.setHeader('Content-Type', 'text/plain')
  res.end(`${STATUS_CODES[status] ?? 'Refused'}\n`)
}

function limit (spec, { keys, costs, charge, report } = {}) {
  const gate = typeof spec === 'string' ? new Gate(spec, { report }) : spec
  const keysOf = keys ?? ((req) => new Array(gate.limits).fill(address(req)))

  // Says once that behind a proxy all clients are one. Where the field has the peer's address, that was put in the place of a proxy's.
  let looks = gate.forwarded('127.0.0.1')
  let seen = 0
  function look (req, keys) {
    if (++seen > LOOKS && seen % 100 !== 0) return
    const [name, field] = FIELDS.find(([name]) => req.headers[name] !== undefined) ?? []
    const peer = req.socket.remoteAddress ?? 'unix:'
    if (name === undefined || !has(keys, peer) || String(req.headers[name]).includes(peer)) return
    looks = !gate.forwarded(peer, field, ADVICE) && gate.forwarded('127.0.0.1')
  }

  function keysFor (req) {
    const made = keysOf(req)
    if (looks) look(req, made)
    return made
  }

  // When the response was sent, or the client is gone. If charge() throws, the estimate stays charged.
  function end (req, res, places) {
    try {
      const used = charge?.(req, res)
      if (used != null) places.settle(used)
    } catch (error) {
      process.emitWarning(error)
    } finally {
      places.leave()
    }
  }

  // A response of HTTP/2 has no `destroyed` itself, but its stream does.
  function endLater (req, res, places) {
    if (res.destroyed ?? res.stream?.destroyed) end(req, res, places)
    else res.once('close', () => end(req, res, places))
  }

  function finish (req, res, next, places, { fields, status }) {
    if (places?.held) endLater(req, res, places)
    send(res, fields)
    if (places) next()
    else refuse(res, status)
  }

  // A client that goes away ends its request while that waits.
  async function wait (req, res, next) {
    const gone = new AbortController()
    const abort = () => gone.abort()
    res.once('close', abort)
    try {
      const answer = await gate.enterAsync(keysFor(req), costs?.(req), gone)
      res.off('close', abort)
      finish(req, res, next, answer.places, answer)
    } catch (error) {
      if (!gone.signal.aborted) next(error)
    }
  }

  if (gate.mayWait) return wait
  return (req, res, next) => finish(req, res, next, gate.enter(keysFor(req), costs?.(req)), gate.answer)
}

exports.limit = limit
