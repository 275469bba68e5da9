// heed: what a server that is asked says about when to ask again: Retry-After, and the RateLimit fields.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const REFUSALS = [429, 503]
const SECONDS = /^\d{1,15}$/

// Milliseconds since 1970 of a date of HTTP; NaN: it is none. One form has no zone, and is of GMT. Date.parse() reads numbers, too.
function time (text) {
  const date = (text ?? '').trim()
  return /^[a-z]{3,9},? /i.test(date) ? Date.parse(/GMT$|[+-]\d{4}$/i.test(date) ? date : `${date} GMT`) : NaN
}

// Of Retry-After: seconds, or a date, which is compared with the server's.
function told (text, date) {
  if (/^\d{1,15}(\.\d+)?$/.test(text.trim())) return Number(text) * 1e3
  const [until, now] = [time(text), time(date)]
  return Number.isNaN(until) ? undefined : Math.max(0, until - (Number.isNaN(now) ? Date.now() : now))
}

// Of RateLimit and its forerunners: the time after which there is something again, if nothing is left now.
function reset (headers) {
  const found = [0]
  for (const item of (headers.get('ratelimit') ?? '').split(',')) {
    const [left, after] = ['r', 't'].map((name) => new RegExp(`;\\s*${name}\\s*=\\s*(\\d{1,15})\\s*(;|$)`).exec(item)?.[1])
    if (Number(left) === 0 && after !== undefined) found.push(Number(after) * 1e3)
  }
  // Draft 7 had one quota, of parameters alone: limit=100, remaining=0, reset=50.
  const [left, after] = ['remaining', 'reset'].map((name) => new RegExp(`(?:^|[,;])\\s*${name}\\s*=\\s*(\\d{1,15})\\s*(?:[,;]|$)`).exec(headers.get('ratelimit') ?? '')?.[1])
  if (Number(left) === 0 && after !== undefined) found.push(Number(after) * 1e3)
  for (const prefix of ['ratelimit-', 'x-ratelimit-']) {
    const [left, after] = ['remaining', 'reset'].map((name) => (headers.get(prefix + name) ?? '').trim())
    // Some say when, and not after how long.
    if (/^0+$/.test(left) && SECONDS.test(after)) found.push(Math.max(0, Number(after) * 1e3 - (Number(after) > 1e9 ? Date.now() : 0)))
  }
  return Math.max(...found) || undefined
}

function retryAfterMs (response, { defaultMs = 1e3 } = {}) {
  const refused = REFUSALS.includes(response.status)
  const text = refused ? response.headers.get('retry-after') : null
  return (text === null ? undefined : told(text, response.headers.get('date'))) ?? reset(response.headers) ?? (refused ? defaultMs : 0)
}

function heed (limiter, rule, key, response, { defaultMs = 1e3, mostMs = 3600e3, jitter = 0.1 } = {}) {
  const ms = Math.min(retryAfterMs(response, { defaultMs }), mostMs) * (1 + jitter * Math.random())
  return ms <= 0 || limiter.pause(rule, key, ms) ? ms : null
}

module.exports = { heed, retryAfterMs }
