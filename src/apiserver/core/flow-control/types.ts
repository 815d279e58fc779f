/** Attributes of requests for fair queuing. */

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
      /** Namespace of the request. '' for a request without a namespace. */
      readonly namespace: string;
    }
  | { readonly resource: false; readonly verb: string; readonly path: string };

/** Seats of a request during its execution and for a time after it. */
export interface WorkEstimate {
  readonly initialSeats: number;
  /** Seats for sending the watch events that a write causes. */
  readonly finalSeats: number;
  readonly additionalLatencyMs: number;
}

export type RejectReason = 'queue-full' | 'concurrency-limit' | 'time-out' | 'cancelled';
