import type { StoreOptions } from './counters'

export class ShmlimitThrottlerStorage {
  constructor(options: StoreOptions)
  increment(key: string, ttl: number, limit: number, blockDuration: number, throttlerName: string):
    Promise<{ totalHits: number, timeToExpire: number, isBlocked: boolean, timeToBlockExpire: number }>
  onApplicationShutdown(): void
}
