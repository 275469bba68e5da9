import Original = require('bottleneck')
import type { SegmentOptions } from './pacer'

declare namespace Bottleneck {
  type Options = Original.ConstructorOptions & SegmentOptions & {
    /** All processes share the limits that say the same id. */
    id: string
    /** Limiters of one rule have the same settings; default the id, or the group's. */
    rule?: string
  }

  class Group extends Original.Group {
    constructor(options: Options)
  }
}

/** Bottleneck, whose limits are those of all processes of the host. */
declare class Bottleneck extends Original {
  constructor(options: Bottleneck.Options)
}

export = Bottleneck
