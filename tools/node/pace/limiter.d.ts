import type { SegmentOptions } from './pacer'

type Interval = number | 'second' | 'sec' | 'minute' | 'min' | 'hour' | 'hr' | 'day'

interface Options extends SegmentOptions {
  /** All processes share the limit that say the same rule; default "limiter", and "limiter-bucket" of a TokenBucket. */
  rule?: string
  /** Default "all". */
  key?: string
  tokensPerInterval: number
  interval: Interval
  maxQueue?: number
  ref?: boolean
}

declare class Tokens {
  /** Waits, and resolves to the tokens that are left. */
  removeTokens(count: number, options?: { signal?: AbortSignal }): Promise<number>
  tryRemoveTokens(count: number): boolean
  getTokensRemaining(): number
  close(): void
}

/** At most tokensPerInterval in any stretch of an interval. */
export class RateLimiter extends Tokens {
  /** fireImmediately: removeTokens() does not wait, and resolves to -1 if the tokens are not there. */
  constructor(options: Options & { fireImmediately?: boolean })
}

/** A bucket, full at first, which gets tokensPerInterval back evenly. */
export class TokenBucket extends Tokens {
  constructor(options: Options & { bucketSize: number })
}
