import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Costs, Gate, Keys } from './index'

export interface LimitOptions<Request, Response = any> {
  /** The keys of a request; default: its address, for each limit. */
  keys?: (req: Request) => Keys
  costs?: (req: Request) => Costs | undefined
  /**
   * What a request has used of limits with an estimate=, when its response was sent or the client is gone: a number, or an array of
   * one for each limit, null where it is not known.
   */
  charge?: (req: Request, res: Response) => number | ReadonlyArray<number | null | undefined> | null | undefined
  report?: (bad: boolean, text: string) => void
}

/** A middleware from a gate or its spec. */
export function limit<Request extends IncomingMessage = any> (spec: string | Gate, options?: LimitOptions<Request>):
  (req: Request, res: ServerResponse, next: (error?: unknown) => void) => void
