/** Metrics of unavailable APIServices. Source: k8s.io/kube-aggregator/pkg/controllers/status/metrics. */
import type { Availability } from '../../api/kinds/cluster/apiservices/conditions.ts';

export class AvailabilityMetrics {
  readonly #unavailable = new Map<string, boolean>();
  /** How often each APIService became unavailable, by name and reason. The number of APIServices bounds the map. */
  readonly #found = new Map<string, Map<string, number>>();

  observe(name: string, { status, reason = '' }: Availability): void {
    const unavailable = status !== 'True';
    const before = this.#unavailable.get(name);
    this.#unavailable.set(name, unavailable);
    if (!unavailable || before === true) return;
    const reasons = this.#found.get(name) ?? new Map<string, number>();
    this.#found.set(name, reasons.set(reason, (reasons.get(reason) ?? 0) + 1));
  }

  forget(name: string): void {
    this.#unavailable.delete(name);
    this.#found.delete(name);
  }

  render(): string {
    const lines = [
      '# HELP aggregator_unavailable_apiservice Gauge of APIServices which are marked as unavailable broken down by APIService name.',
      '# TYPE aggregator_unavailable_apiservice gauge',
    ];
    for (const [name, is] of this.#unavailable)
      lines.push(`aggregator_unavailable_apiservice{name="${name}"} ${is ? 1 : 0}`);
    lines.push(
      '# HELP aggregator_unavailable_apiservice_total Counter of APIServices which are marked as unavailable broken down by APIService name and reason.',
      '# TYPE aggregator_unavailable_apiservice_total counter',
    );
    for (const [name, reasons] of this.#found) {
      for (const [reason, count] of reasons)
        lines.push(`aggregator_unavailable_apiservice_total{name="${name}",reason="${reason}"} ${count}`);
    }
    return lines.join('\n');
  }
}
