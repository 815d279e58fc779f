/** Duration of store operations by operation and kind. Source: k8s.io/apiserver/pkg/storage/etcd3/metrics. */
import type { KindDefinition } from '../../api/registry/definition.ts';
import { Histogram } from '../../base/metrics/histogram.ts';

/** Upper bounds of the histogram buckets, in seconds. */
const BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];

export type StoreOperation = 'get' | 'create' | 'update' | 'delete';

class Figures {
  readonly seconds = new Histogram(BUCKETS);
  errors = 0;
}

export class StoreMetrics {
  /** Figures by kind and operation. The number of kinds bounds the size. */
  readonly #kinds = new Map<string, Map<StoreOperation, Figures>>();
  /** Figures by definition of the kind, in addition to those by name, so that no label text is built per operation. */
  readonly #known = new WeakMap<KindDefinition, Map<StoreOperation, Figures>>();

  observe(definition: KindDefinition, operation: StoreOperation, seconds: number, isError: boolean): void {
    const operations = this.#operations(definition);
    let figures = operations.get(operation);
    if (figures === undefined) {
      figures = new Figures();
      operations.set(operation, figures);
    }
    figures.seconds.observe(seconds);
    if (isError) figures.errors += 1;
  }

  #operations(definition: KindDefinition): Map<StoreOperation, Figures> {
    const known = this.#known.get(definition);
    if (known !== undefined) return known;
    const labels = `group="${definition.group}",resource="${definition.plural}"`;
    const operations = this.#kinds.get(labels) ?? new Map<StoreOperation, Figures>();
    this.#kinds.set(labels, operations);
    this.#known.set(definition, operations);
    return operations;
  }

  render(): string {
    const durations: string[] = [];
    const totals: string[] = [];
    const errors: string[] = [];
    for (const [kind, operations] of this.#kinds) {
      for (const [operation, { seconds, errors: failed }] of operations) {
        const labels = `operation="${operation}",${kind}`;
        for (const [le, count] of seconds.cumulative())
          durations.push(`etcd_request_duration_seconds_bucket{${labels},le="${le}"} ${count}`);
        durations.push(
          `etcd_request_duration_seconds_sum{${labels}} ${seconds.sum}`,
          `etcd_request_duration_seconds_count{${labels}} ${seconds.count}`,
        );
        totals.push(`etcd_requests_total{${labels}} ${seconds.count}`);
        if (failed > 0) errors.push(`etcd_request_errors_total{${labels}} ${failed}`);
      }
    }
    return [
      '# HELP etcd_request_duration_seconds Etcd request latency in seconds for each operation and object type.',
      '# TYPE etcd_request_duration_seconds histogram',
      ...durations,
      '# HELP etcd_requests_total Etcd request counts for each operation and object type.',
      '# TYPE etcd_requests_total counter',
      ...totals,
      '# HELP etcd_request_errors_total Etcd failed request counts for each operation and object type.',
      '# TYPE etcd_request_errors_total counter',
      ...errors,
    ].join('\n');
  }
}
