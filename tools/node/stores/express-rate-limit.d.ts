import type { StoreOptions } from './counters'

export class ShmlimitStore {
  constructor(options: StoreOptions)
  localKeys: boolean
  prefix: string
  init(options: { windowMs: number }): void
  get(key: string): { totalHits: number, resetTime: Date | undefined } | undefined
  increment(key: string): { totalHits: number, resetTime: Date | undefined }
  decrement(key: string): void
  resetKey(key: string): void
  resetAll(): void
  shutdown(): void
}
