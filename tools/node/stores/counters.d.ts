/** Where a store has its counts. Segment and rule are created where they are missing. */
export interface StoreOptions {
  segment: string
  /** Stores with the same rule share their counts. One store can have the front-end's default rule, which is its name. */
  rule?: string
  /** Of a segment that is created. */
  slots?: number
  mode?: number
  group?: number
  /** Trust a segment of this user id too, besides root's and the process's own user. */
  owner?: number
  /** redis://HOST: hosts with the same backend share the counts. See shmlimit_global(3) for its forms. */
  backend?: string
  /** Of the backend's keys; default "shmlimit:". */
  backendPrefix?: string
  /** The longest time that a call waits for the backend; default 50. */
  deadlineMs?: number
  /** What becomes of a request while the backend does not answer; default deny, or local with a share. */
  onFailure?: 'deny' | 'allow' | 'local' | 'error'
  /** This host's part of a limit then, in thousandths: 1 to 1000. */
  share?: number
}
