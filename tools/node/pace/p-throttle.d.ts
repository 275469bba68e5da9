import type { SegmentOptions } from './pacer'

export interface Options extends SegmentOptions {
  /** All processes share the limit that say the same rule; default "p-throttle". */
  rule?: string
  /** Default "all". */
  key?: string
  /** Calls in an interval; whole, 1 or more. */
  limit: number
  /** Milliseconds. */
  interval: number
  /** An interval is any stretch of time; otherwise it begins with its first call. */
  strict?: boolean
  /** Calls that wait when it aborts are rejected with its reason. */
  signal?: AbortSignal
  onDelay?: (...args: any[]) => void
  /** What a call counts for; whole, 0 or more. */
  weight?: (...args: any[]) => number
  maxQueue?: number
  ref?: boolean
}

type Throttled<F> = F & { isEnabled: boolean, readonly queueSize: number }

export default function pThrottle(options: Options): <F extends (...args: any[]) => unknown>(fn: F) => Throttled<F>
