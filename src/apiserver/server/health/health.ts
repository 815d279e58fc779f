/** Serves `/healthz`, `/livez`, `/readyz` and their individual checks. Source: k8s.io/apiserver/pkg/server/healthz. */
import { messageOf } from '../../../base/errors.ts';
import type { Exchange } from '../../http/exchange.ts';

export interface HealthCheck {
  readonly name: string;
  /** Runs the check. Throws or rejects with an Error if the check fails. */
  check(): Promise<void> | void;
}

export interface HealthEndpoint {
  readonly path: string;
  readonly checks: readonly HealthCheck[];
  /** Records the results of the checks when the whole endpoint is requested. */
  readonly results?: HealthResults;
}

/** Results for /metrics/slis. Source: k8s.io/component-base/metrics/prometheus/slis. */
export class HealthResults {
  /** Results by name and type of the check. The key has the form of labels. */
  readonly #checks = new Map<string, { healthy: boolean; success: number; error: number }>();

  note(name: string, type: string, healthy: boolean): void {
    const labels = `name="${name}",type="${type}"`;
    let counts = this.#checks.get(labels);
    if (counts === undefined) {
      counts = { healthy, success: 0, error: 0 };
      this.#checks.set(labels, counts);
    }
    counts.healthy = healthy;
    counts[healthy ? 'success' : 'error'] += 1;
  }

  render(): string {
    const lines = [
      '# HELP kubernetes_healthcheck This metric records the result of a single healthcheck.',
      '# TYPE kubernetes_healthcheck gauge',
    ];
    for (const [labels, { healthy }] of this.#checks)
      lines.push(`kubernetes_healthcheck{${labels}} ${healthy ? 1 : 0}`);
    lines.push(
      '# HELP kubernetes_healthchecks_total This metric records the results of all healthcheck.',
      '# TYPE kubernetes_healthchecks_total counter',
    );
    for (const [labels, counts] of this.#checks)
      for (const status of ['error', 'success'] as const)
        if (counts[status] > 0)
          lines.push(`kubernetes_healthchecks_total{${labels},status="${status}"} ${counts[status]}`);
    return `${lines.join('\n')}\n`;
  }
}

/** Serves `path` or `path/check`. Returns false if there is no such check. */
export async function answerHealth(endpoint: HealthEndpoint, exchange: Exchange): Promise<boolean> {
  const { info } = exchange;
  const below = info.path.slice(endpoint.path.length).replace(/^\//, '').replace(/\/$/, '');
  const excluded = new Set(info.query.getAll('exclude'));
  const checks =
    below === ''
      ? endpoint.checks.filter((each) => !excluded.has(each.name))
      : endpoint.checks.filter((each) => each.name === below);
  if (below !== '' && checks.length === 0) return false;
  const results = await Promise.all(checks.map(run));
  const failed = results.filter((each) => each.failure !== undefined);
  const name = endpoint.path.slice(1);
  if (below === '')
    for (const { check, failure } of results) endpoint.results?.note(check, name, failure === undefined);
  if (failed.length === 0 && !info.query.has('verbose')) {
    exchange.sendText(200, 'ok');
    return true;
  }
  const lines = results.map(({ check, failure }) =>
    failure === undefined
      ? `[+]${check} ok`
      : `[-]${check} failed: ${exchange.user.name === 'system:anonymous' ? 'reason withheld' : failure}`,
  );
  for (const each of excluded) lines.push(`[+]${each.replaceAll(/[^\w./-]/g, '?').slice(0, 128)} excluded: ok`);
  lines.push(failed.length === 0 ? `${name} check passed` : `${name} check failed`);
  exchange.sendText(failed.length === 0 ? 200 : 500, `${lines.join('\n')}\n`);
  return true;
}

async function run(check: HealthCheck): Promise<{ readonly check: string; readonly failure: string | undefined }> {
  try {
    await check.check();
    return { check: check.name, failure: undefined };
  } catch (error) {
    return { check: check.name, failure: messageOf(error) };
  }
}
