/** Where a store has its counts. Segment and rule are created where they are missing. */
export interface StoreOptions {
  segment: string
  /** Stores with the same rule share their counts. */
  rule?: string
  /** Of a segment that is created. */
  slots?: number
  mode?: number
  group?: number
  /** Trust a segment of this user id too, besides root's and the process's own user. */
  owner?: number
}
