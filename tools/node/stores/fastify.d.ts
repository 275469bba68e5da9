import type { StoreOptions } from './counters'

/** The class for the plugin's option `store`. */
export function shmlimitStore(options: StoreOptions): new (options: any) => {
  incr(key: string, callback: (error: Error | null, result?: { current: number, ttl: number }) => void, timeWindow: number, max: number): void
  read(key: string, callback: (error: Error | null, result?: { current: number, ttl: number }) => void): void
  child(options: any): any
}
