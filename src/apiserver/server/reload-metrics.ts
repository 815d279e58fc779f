/**
 * Metrics of reloaded configuration files: reloads by result, and the hash of the active configuration. Source:
 * k8s.io/apiserver/pkg/server/options/{authentication,authorization,encryption}config/metrics.
 */
import { contentDigest } from '../../wire/digest.ts';
import type { Reloads } from '../config/server-config.ts';

/**
 * Metrics text without a trailing line break. `what`: upstream's name of the configuration. `server`: identity of the
 * API server.
 */
export function reloadMetrics(
  what: 'authentication' | 'authorization' | 'encryption',
  reloads: Reloads,
  server: string,
): string {
  const prefix = `apiserver_${what}_config_controller`;
  const id = `apiserver_id_hash="${contentDigest(server)}"`;
  const done = (['failure', 'success'] as const).flatMap((status) => {
    const { [status]: one } = reloads;
    return one === undefined ? [] : [{ labels: `{${id},status="${status}"}`, ...one }];
  });
  return [
    `# HELP ${prefix}_automatic_reloads_total Total number of automatic reloads of ${what} configuration split by status and apiserver identity.`,
    `# TYPE ${prefix}_automatic_reloads_total counter`,
    ...done.map(({ labels, count }) => `${prefix}_automatic_reloads_total${labels} ${count}`),
    `# HELP ${prefix}_automatic_reload_last_timestamp_seconds Timestamp of the last automatic reload of ${what} configuration split by status and apiserver identity.`,
    `# TYPE ${prefix}_automatic_reload_last_timestamp_seconds gauge`,
    ...done.map(({ labels, lastMs }) => `${prefix}_automatic_reload_last_timestamp_seconds${labels} ${lastMs / 1000}`),
    `# HELP ${prefix}_last_config_info Information about the last applied ${what} configuration with hash as label, split by apiserver identity.`,
    `# TYPE ${prefix}_last_config_info gauge`,
    `${prefix}_last_config_info{${id},hash="${contentDigest(reloads.text)}"} 1`,
  ].join('\n');
}
