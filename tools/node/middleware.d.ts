import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Costs, Gate, Keys } from './index'

export interface LimitOptions<Request> {
  /** The keys of a request; default: its address, for each limit. */
  keys?: (req: Request) => Keys
  costs?: (req: Request) => Costs | undefined
  report?: (bad: boolean, text: string) => void
}

/** A middleware from a gate or its spec. */
export function limit<Request extends IncomingMessage = any> (spec: string | Gate, options?: LimitOptions<Request>):
  (req: Request, res: ServerResponse, next: (error?: unknown) => void) => void
