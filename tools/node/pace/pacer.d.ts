import type { Place, Rule } from '../index'

export interface SegmentOptions {
  /** The segment's name. It is created if it is missing. */
  segment: string
  /** Of a segment that is created. */
  slots?: number
  mode?: number
  group?: number
  /** Trust a segment of this user id too, besides root's and the process's own user. */
  owner?: number
}

export interface PacerOptions extends SegmentOptions {
  /** All processes share the limit that say the same rule. */
  rule: string
  /** The key of calls that say none. */
  key?: string
  /** How many calls may wait in this process: acquire() of one more is rejected with a QueueFull. Default Infinity. */
  maxQueue?: number
  /** False: the process may exit although calls wait. Default true. A pacer has a timer only while a call waits. */
  ref?: boolean
}

export interface AcquireOptions {
  /** Tokens; default 1. */
  cost?: number
  key?: string
  /** A call whose signal aborts leaves its turn to the next one, and is rejected with the signal's reason. */
  signal?: AbortSignal
}

/** acquire() was rejected, since maxQueue calls wait. */
export class QueueFull extends Error {
  code: 'EQUEUEFULL'
}

/**
 * Calls wait for their turn: in this process first come, first served, and over all processes of the host in the order of their
 * reservations, of which each process has one at a time. Windows and counters cannot be reserved in: there each process asks again when
 * the tokens are back.
 */
export class Pacer {
  /** A text, such as '10/s burst 1' or '4 at once', or a rule. */
  constructor(limit: string | Rule, options: PacerOptions)
  /** How many calls wait in this process. */
  readonly queued: number
  /** Resolves when it is the caller's turn: for a limit of how many at once, to a place, which the caller must leave. */
  acquire(options?: AcquireOptions): Promise<Place | undefined>
  /** True, or a place, if it can be the caller's turn now, and no call waits here. */
  tryAcquire(options?: { cost?: number, key?: string }): boolean | Place | null
  /** A function that waits for its turn. It holds a place until its promise is settled. The options can be a function of its arguments. */
  wrap<A extends unknown[], R>(fn: (...args: A) => R, options?: AcquireOptions | ((...args: A) => AcquireOptions)): (...args: A) => Promise<Awaited<R>>
  /** Changes nothing: tokens or places that are free, and the milliseconds until the cost fits, and until all are back. */
  peek(options?: { cost?: number, key?: string }): { remaining: number, retryAfterMs: number, resetAfterMs: number }
  /** Nothing of the key passes for so long, in all processes; calls that wait go on after it. See Limiter.pause(). */
  pause(ms: number, options?: { key?: string }): boolean
  /** Calls that wait are rejected. */
  close(): void
}
