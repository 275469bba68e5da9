// tap: TAP from a script of Node's, for the tests of the package.
//
// SPDX-License-Identifier: BSD-2-Clause
'use strict'

const { isDeepStrictEqual, inspect } = require('node:util')

let count = 0
let failures = 0
// Node ends when nothing is left to wait for, also in the middle of a test.
process.exitCode = 1

function ok (held, title) {
  console.log(`${held ? 'ok' : 'not ok'} ${++count} - ${title}`)
  if (!held) {
    failures++
    const [, where] = /\n.*tap[^\n]*\n(?:.*tap[^\n]*\n)*\s*at (.*)/.exec(new Error().stack) ?? []
    console.error(`# failed at ${where}`)
  }
  return held
}

function is (got, want, title) {
  if (!ok(isDeepStrictEqual(got, want), title)) console.error(`# got:  ${inspect(got)}\n# want: ${inspect(want)}`)
}

// What is thrown, as "ShmlimitError ESRCH: its message"; "" if nothing is.
function thrown (run) {
  try {
    run()
  } catch (error) {
    return `${error.name} ${error.code ?? '-'}: ${error.message}`
  }
  return ''
}

// Ask again until it is so, for a minute.
async function until (isSo) {
  for (let tries = 0; tries < 1200; tries++) {
    const answer = await isSo()
    if (answer) return answer
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('it did not become so within a minute')
}

function skip (reason) {
  console.log(`1..0 # SKIP ${reason}`)
  process.exit(0)
}

function done () {
  console.log(`1..${count}`)
  process.exitCode = failures > 0 ? 1 : 0
}

module.exports = { ok, is, thrown, until, skip, done }
