import type { StoreOptions } from './counters'

export class ShmlimitStore {
  constructor(options: StoreOptions)
  localKeys: boolean
  prefix: string
  init(options: { windowMs: number, limit?: unknown }): void
  get(key: string): { totalHits: number, resetTime: Date | undefined } | undefined
  /** With a backend, a promise. */
  increment(key: string): { totalHits: number, resetTime: Date | undefined } | Promise<{ totalHits: number, resetTime: Date | undefined }>
  decrement(key: string): void
  resetKey(key: string): void | Promise<void>
  resetAll(): void | Promise<void>
  shutdown(): void
}
