import { RateLimiterStoreAbstract, IRateLimiterStoreOptions } from 'rate-limiter-flexible'
import type { StoreOptions } from './counters'

export class RateLimiterShmlimit extends RateLimiterStoreAbstract {
  constructor(options: StoreOptions & Omit<IRateLimiterStoreOptions, 'storeClient'>)
  close(): void
}
