/** Alerts of a host, and the port to the endpoints that are scraped. */

export type Severity = 'critical' | 'warning' | 'info';

export interface Alert {
  readonly name: string;
  readonly state: 'pending' | 'firing';
  readonly severity: Severity;
  /** Time at which the expression became true, in milliseconds since 1970. */
  readonly sinceMs: number;
  readonly summary: string;
  readonly fix: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Endpoint of this host with metrics in the Prometheus text format. */
export interface AlertTarget {
  /** Label `job` of the samples. It should be the same in the scrape configuration of a Prometheus server. */
  readonly job: string;
  /** Returns the metrics. Rejects if the endpoint does not respond, or when `signal` aborts. */
  scrape(signal: AbortSignal): Promise<string>;
}

/** Result of the latest scrape of a target. */
export interface TargetState {
  readonly job: string;
  readonly up: boolean;
  readonly error?: string;
}

export interface AlertReport {
  /** Time of the latest evaluation; undefined before the first evaluation. */
  readonly evaluatedAtMs?: number;
  readonly targets: readonly TargetState[];
  /** Firing alerts come first. Alerts in the same state are sorted by severity, the most severe first. */
  readonly alerts: readonly Alert[];
}
