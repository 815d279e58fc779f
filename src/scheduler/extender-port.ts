/** Requests to a scheduler extender. Source: k8s.io/kube-scheduler/extender/v1. */

export interface ExtenderSettings {
  readonly urlPrefix: string;
  /** Absent: the extender does not take part in that step. */
  readonly filterVerb?: string;
  readonly prioritizeVerb?: string;
  readonly preemptVerb?: string;
  readonly bindVerb?: string;
  readonly weight: number;
  readonly timeoutMs: number;
  /** Whether node names are sent instead of nodes. */
  readonly nodeCacheCapable: boolean;
  /** The extender is used only for pods that request one of these resources. Empty: for all pods. */
  readonly managedResources: readonly string[];
  /** Whether scheduling continues when the extender does not respond. */
  readonly ignorable: boolean;
  readonly tls: ExtenderTls | undefined;
}

/** Key material in PEM. */
export interface ExtenderTls {
  readonly insecure: boolean;
  readonly serverName: string | undefined;
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export interface ExtenderCaller {
  /**
   * POSTs JSON to `<urlPrefix>/<verb>` and returns the parsed response. Rejects with a one-line error after the
   * timeout, on a status other than 200, and on a response that is not JSON or larger than 16 MiB.
   */
  post(extender: ExtenderSettings, verb: string, body: unknown): Promise<unknown>;
  close(): Promise<void>;
}
