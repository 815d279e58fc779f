/** Alerts of a host, and what they need from it. */

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

/** An endpoint of this host with metrics in Prometheus' text format. */
export interface AlertTarget {
  /** Label `job` of the samples, as in the scrape configuration of a Prometheus. */
  readonly job: string;
  /** Rejects if the endpoint does not answer in time. */
  scrape(signal: AbortSignal): Promise<string>;
}

/** Result of the latest scrape of a target. */
export interface TargetState {
  readonly job: string;
  readonly up: boolean;
  readonly error?: string;
}

export interface AlertReport {
  /** Time of the latest evaluation; undefined before the first one. */
  readonly evaluatedAtMs?: number;
  readonly targets: readonly TargetState[];
  /** Firing alerts first, then the most severe ones. */
  readonly alerts: readonly Alert[];
}
