/** Calls of a scheduler extender. Source: k8s.io/kube-scheduler/extender/v1. */

export interface ExtenderSettings {
  readonly urlPrefix: string;
  /** Absent: the extender does not take part in that step. */
  readonly filterVerb?: string;
  readonly prioritizeVerb?: string;
  readonly preemptVerb?: string;
  readonly bindVerb?: string;
  readonly weight: number;
  readonly timeoutMs: number;
  /** Names of nodes are sent instead of nodes. */
  readonly nodeCacheCapable: boolean;
  /** The extender is consulted only for pods that request one of these; empty: for all. */
  readonly managedResources: readonly string[];
  /** Scheduling continues without an extender that does not answer. */
  readonly ignorable: boolean;
  readonly tls: ExtenderTls | undefined;
}

/** PEM. */
export interface ExtenderTls {
  readonly insecure: boolean;
  readonly serverName: string | undefined;
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export interface ExtenderCaller {
  /**
   * POSTs JSON to `<urlPrefix>/<verb>` and returns the parsed answer. Rejects with a one-line error after the time-out,
   * on a status other than 200, and on an answer that is not JSON or larger than 16 MiB.
   */
  post(extender: ExtenderSettings, verb: string, body: unknown): Promise<unknown>;
  close(): Promise<void>;
}
