/** What fair queuing knows of a request. */

export interface Requester {
  readonly name: string;
  readonly groups: readonly string[];
}

export type RequestTarget =
  | {
      readonly resource: true;
      readonly verb: string;
      readonly group: string;
      readonly plural: string;
      readonly subresource: string;
      /** '' when the request is not in a namespace. */
      readonly namespace: string;
    }
  | { readonly resource: false; readonly verb: string; readonly path: string };

/** How wide a request is, and for how long: seats while it executes, then others for a time after it. */
export interface WorkEstimate {
  readonly initialSeats: number;
  /** For the events that watchers are sent after a write. */
  readonly finalSeats: number;
  readonly additionalLatencyMs: number;
}

export type RejectReason = 'queue-full' | 'concurrency-limit' | 'time-out' | 'cancelled';
