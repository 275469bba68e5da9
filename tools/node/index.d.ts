/**
 * shmlimit: one rate limit for all processes of a host. Times are in milliseconds. What each call means is in
 * shmlimit(3) and shmlimit_gate(3), under the same name.
 */

/** Of Linux: `code` is 'ESRCH' for a rule that is missing, 'ENOENT' for a segment. Nothing was changed. */
export class ShmlimitError extends Error {
  errno: number
  code: string
  syscall: string
}

/** A string counts as UTF-8. 1 to 1024 bytes for a Limiter, any number for a Gate. */
export type Key = string | Uint8Array

export interface SegmentOptions {
  /** Keys that can be live at once; default 65536. */
  slots?: number
  slotsMax?: number
  /** Permission bits; default 0o600. */
  mode?: number
  /** Group id; default the process's. */
  group?: number
  rules?: number
  storeKeys?: number
  onFull?: 'evict' | 'allow' | 'deny'
  clock?: 'precise' | 'coarse'
}

export interface Rule {
  algorithm?: 'funnel' | 'token-bucket' | 'warmup' | 'window' | 'lease' | 'counter' | 'hold' | 'gcra'
  mode?: 'enforce' | 'dry_run' | 'off' | 'block'
  /** Largest burst. */
  capacity?: number
  /** `refill` tokens come back every `periodMs`; 0.1 is what it says: 1 in ten times as long. */
  refill?: number
  periodMs?: number
  /** Longest wait that a reservation may cause; default 0: no reservations. */
  maxWaitMs?: number
  warmupMs?: number
  coldFactorMilli?: number
  /** LEASE: tokens that a key may spend here before the backend was asked, which is debited afterwards. */
  credit?: number
  nextPays?: boolean
  countRefused?: boolean
  /** On a full table its keys keep their slots against keys of rules that are not protected. */
  protected?: boolean
  /** HOLD: a place ends after the period, also while its process lives: '20 at once at most 5 minutes each'. */
  cutOff?: boolean
  /** A counter: the time zone by whose hour, day, week or month it counts. */
  zone?: string
  /** HOLD: how the number of places is found, between `least` and `capacity`: 'auto 8 to 64 at once'. */
  law?: 'none' | 'vegas' | 'gradient2' | 'aimd'
  least?: number
}

/** The figures of the latest answer in this thread. The next call overwrites them, so a call allocates nothing. */
export interface Result {
  readonly limit: number
  readonly remaining: number
  /** A reservation: go on after this long. */
  readonly waitMs: number
  /** Denied: the same request fits after this long; Infinity: never. */
  readonly retryAfterMs: number
  readonly resetAfterMs: number
}

/** The same of count(). */
export interface Counted {
  readonly count: number
  readonly applied: number
  readonly ttlMs: number
}

/** A place that is held, until it is left or the rule's period is over. */
export interface Place {
  /** The period begins again. False: the place is not held any more. */
  renew(): boolean
  /**
   * False: it was not held any more. Under a rule such as 'auto at once': 'dropped' says that the work failed by overload, 'untimed' that how
   * long it took says nothing of the load.
   */
  leave(how?: 'dropped' | 'untimed'): boolean
}

/** Flags of count(). */
export const SATURATE: number
export const RESTART: number

/** The rule of a text: '5/minute', '10/s burst 20', '1000/hour strict', '20 at once', 'block', 'unlimited'; shmlimit(7) has all forms. RangeError: the text is none; the message has the nearest. */
export function ruleParse(text: string, algorithm?: Rule['algorithm']): Rule

/** A rule's text, which ruleParse() reads as the same limit. */
export function ruleText(rule: Rule): string

/** A limit that comes with a call, read once: new Limit('100/minute'). RangeError: the text is none. */
export class Limit {
  constructor(text: string)
}

/** A handle on a segment. A `limit` is for rules of the algorithm gcra, of which each call can bring its own, and of hold, whose calls can bring a number of places; a text is read once. Rules are given by name, or by their id, which is faster. Calls take effect at once: none waits. */
export class Limiter {
  constructor(name: string, options?: { readOnly?: boolean, owner?: number })
  static create(name: string, options?: SegmentOptions): Limiter
  static destroy(name: string): void
  readonly name: string
  readonly result: Result
  readonly counted: Counted
  close(): void
  /** Was the segment destroyed, or replaced under its name? */
  gone(): boolean
  ruleSet(name: string, rule: Rule): number
  /** The same for a program that starts with its limits: the rule is set if it is missing, or if the program before it brought another one. What an operator changed since stays. */
  ruleEnsure(name: string, rule: Rule): number
  ruleFind(name: string): number
  ruleRemove(name: string): void
  /** True: allowed. `result` has the figures. */
  take(rule: string | number, key: Key, cost?: number, limit?: string | Limit): boolean
  /** For batches: of `most` tokens takes as many as fit, and returns how many; 0: none fits. Not under rules of 'hold' and 'lease'. `result` has the other figures. */
  takeSome(rule: string | number, key: Key, most: number, limit?: string | Limit): number
  peek(rule: string | number, key: Key, cost?: number, limit?: string | Limit): boolean
  reserve(rule: string | number, key: Key, cost?: number, maxWaitMs?: number, limit?: string | Limit): boolean
  refund(rule: string | number, key: Key, tokens?: number, limit?: string | Limit): void
  /** By a limit, into debt up to maxWaitMs; otherwise up to the rule's. */
  charge(rule: string | number, key: Key, tokens?: number, limit?: string | Limit, maxWaitMs?: number): void
  /** Nothing of the key passes for so long, in all processes: what it stands for has answered 429, say. A longer pause stays; 0 ends one. False: the segment has no slot for it, or is off. */
  pause(rule: string | number, key: Key, ms: number): boolean
  /** For how many milliseconds the key is paused still; 0: it is not. */
  paused(rule: string | number, key: Key): number
  /** Add to a count that expires. `counted` has the figures. */
  count(rule: string | number, key: Key, n?: number, ttlMs?: number, bound?: number, flags?: number): boolean
  /** Enter one of the places of a HOLD rule; null: none is free. `result.remaining` is how many are left. With a limit, such as '20 at once', one is free while fewer are held than that; at most the rule's capacity counts. */
  enter(rule: string | number, key: Key, limit?: string | Limit): Place | null
  /** redis-cell's CL.THROTTLE; `result` has the figures. */
  throttle(key: Key, capacity: number, count: number, periodS: number, quantity?: number): boolean
  /** One key, all keys of a rule, or all keys. Returns how many there were. */
  reset(rule?: string | number, key?: Key): number
}

export interface Answer {
  readonly outcome: 'unlimited' | 'passed' | 'rejected' | 'rejected-dry-run' | 'failed' | 'delayed' | 'delayed-dry-run'
  /** HTTP status of a refusal; 0: the request goes on. */
  readonly status: number
  /** Failed: why. */
  readonly error: ShmlimitError | null
  /** Rejected: which limit of the spec; else -1. */
  readonly deniedBy: number
  /** Tokens left in the limit that has the fewest; Infinity: not known. */
  readonly remaining: number
  readonly retryAfterMs: number
  /** Header fields of the response: name and value. */
  readonly fields: [string, string][]
}

/** The places that a request holds in limits of how many at once, and what it has paid in limits with an estimate=. */
export interface Places {
  /** False: there is nothing to leave, and nothing to settle. */
  readonly held: boolean
  /**
   * Charge what the request has used in all, in limits with an estimate=: a number, or an array of one for each limit of the spec, null
   * where it is not known. More than was paid becomes debt, less is given back, and the same again changes nothing. Call it before leave().
   */
  settle(used: number | ReadonlyArray<number | null | undefined>): void
  /** When the request has ended. A second call does nothing. */
  leave(): void
}

/** With algorithm=gcra in the spec, a request may bring its limit, such as that of its customer's plan. What cannot be read is
 * reported, and rate_error= of the spec decides, or else the rule's own limit. */
export interface KeyWithLimit {
  key: Key | null
  limit?: string | null
}

/** A key for each limit of the spec, in its order; null where one does not apply. One key alone is the first limit's. */
type OneKey = Key | KeyWithLimit | null | undefined
export type Keys = OneKey | OneKey[]
export type Costs = number | (number | undefined)[]

/** The limits in front of an application, described by the text that shmlimit_gate(3) explains. */
export class Gate {
  /** `report` gets what goes wrong, and when that is over; by default process.emitWarning() gets the former. */
  constructor(spec: string, options?: { report?: (bad: boolean, text: string) => void })
  /** Number of limits in the spec. */
  readonly limits: number
  /** The spec names a backend (backend=): use askAsync(), since ask() may block the event loop until it answers. */
  readonly mayWait: boolean
  /** The latest answer of ask(); the next one in this thread overwrites it. */
  readonly answer: Answer
  /** Open the segment now, and throw if that fails. */
  attach(): void
  /**
   * Report that all clients behind a proxy are one, for a request that has a header field which proxies write, and whose key is the
   * peer's address: once in a process, if the peer is private or loopback and the spec does not say proxy_warning=no. True: it was
   * reported, or would be if the request had the field, where `field` is left out. `advice` says how proxies are configured.
   */
  forwarded(peer: string, field?: string, advice?: string): boolean
  /** True: the request goes on. */
  ask(keys: Keys, costs?: Costs): boolean
  /**
   * Like ask(), but the event loop goes on while the host's agent asks a Redis server. Without an agent, a thread of libuv waits
   * for the server. A request whose signal aborts takes nothing; then, or if the gate is closed, the promise is rejected.
   */
  askAsync(keys: Keys, costs?: Costs, options?: { signal?: AbortSignal }): Promise<Answer & { readonly allowed: boolean }>
  /** As ask(), for a request that holds its places only until it leaves them. Null: the request is refused. */
  enter(keys: Keys, costs?: Costs): Places | null
  /** Like askAsync(), and holds places as enter() does, from the call on. */
  enterAsync(keys: Keys, costs?: Costs, options?: { signal?: AbortSignal }): Promise<Answer & { readonly allowed: boolean, readonly places: Places | null }>
  close(): void
}

/** COUNTER rules whose counts hosts share through a Redis server. Each call may wait for that, in a thread of libuv's. */
export class GlobalCounts {
  /** The segment's rules must exist. While the host has no agent, a thread of this process is it. */
  constructor(segment: string, options: {
    /** redis://HOST, or another form of shmlimit_global(3). */
    backend: string
    /** Of the backend's keys; default "shmlimit:". */
    backendPrefix?: string
    /** The longest time that a call waits for the backend; default 50. */
    deadlineMs?: number
    /** While the backend does not answer; default deny, or local with a localShare. */
    onFailure?: 'deny' | 'allow' | 'local' | 'error'
    /** This host's part of a bound then, in thousandths. */
    localShare?: number
    /** Trust a segment of this user id too. */
    owner?: number
  })
  /** Add n, 1 or more, or what of it fits: see `applied`. A count that begins lives for ttlMs. */
  count(rule: string, key: Key, n: number, ttlMs: number, bound: number): Promise<{ count: number, applied: number, ttlMs: number }>
  /** Forget the key, or all keys of the rule, on all hosts. Resolves to how many the backend had. */
  reset(rule: string, key?: Key): Promise<number>
  close(): void
}
