/** Port for requests to scheduler extenders. Source: k8s.io/kube-scheduler/extender/v1. */

export interface ExtenderSettings {
  readonly urlPrefix: string;
  /** Path of the request for this step. If absent, the extender does not take part in the step. */
  readonly filterVerb?: string;
  readonly prioritizeVerb?: string;
  readonly preemptVerb?: string;
  readonly bindVerb?: string;
  readonly weight: number;
  readonly timeoutMs: number;
  /** Whether requests contain the names of nodes instead of complete nodes. */
  readonly nodeCacheCapable: boolean;
  /**
   * Resources for which the extender is used: only pods that request one of them. If empty, it is used for all pods.
   */
  readonly managedResources: readonly string[];
  /** Whether scheduling continues when the extender does not respond. */
  readonly ignorable: boolean;
  readonly tls: ExtenderTls | undefined;
}

/** Keys and certificates in PEM. */
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
   * timeout, if the status is not 200, or if the response is not JSON or larger than 16 MiB.
   */
  post(extender: ExtenderSettings, verb: string, body: unknown): Promise<unknown>;
  close(): Promise<void>;
}
