import { Key, Limiter } from '../index'

/** An answer of fetch(), or what has its status and headers. */
export interface Answer {
  status: number
  headers: { get(name: string): string | null }
}
/** For how many milliseconds nothing is to be sent to the server that gave this answer: what Retry-After says, in seconds or as a date, where the status is 429 or 503; else what the RateLimit fields say, if nothing is left. 429 or 503 without either: defaultMs, a second. 0: go on. */
export function retryAfterMs(response: Answer, options?: { defaultMs?: number }): number
/** Pause the key in all processes for as long as the answer asks for, at most for mostMs, an hour, so that no wrong field stops a program for a year. The pause is longer by a random part of up to `jitter`, 0.1: hosts that were asked for the same time do not begin together. Returns its milliseconds; 0: none was asked for; null: there is no pause, though one was asked for, since the segment has no slot for the key, or is off. */
export function heed(limiter: Limiter, rule: string | number, key: Key, response: Answer, options?: { defaultMs?: number, mostMs?: number, jitter?: number }): number | null
