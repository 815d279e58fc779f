/** Alerts of this host: the endpoints that its roles have, events and the condition of its Node. */
import { readFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { prometheusRule } from '../../alerts/core/rules.ts';
import { compiledRules } from '../../alerts/core/tracker.ts';
import { type AlertEngine, createAlertEngine } from '../../alerts/engine.ts';
import { type Endpoint, scrapeEndpoint } from '../../alerts/io/scrape.ts';
import type { AlertReport, AlertTarget } from '../../alerts/port.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import type { Log } from '../../base/log.ts';
import { MetricsText } from '../../base/metrics/metrics-text.ts';
import type { EventRecorder } from '../../client/index.ts';
import type { KubeletDeps } from '../../kubelet/index.ts';
import { createHostFacts } from '../../kubelet/io/host-facts/index.ts';
import { etcdFiles, masterFiles } from '../../pki/index.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';

export interface HostAlerts {
  readonly engine: AlertEngine;
  /** Condition `HyperedgeAlerts` of the Node. It is not reported until an alert has fired. */
  readonly conditions: NonNullable<KubeletDeps['conditions']>;
}

/** Report that the control socket returns. */
export interface HostAlertReport extends AlertReport {
  readonly node: string;
}

const CONDITION = 'HyperedgeAlerts';
const MAX_MESSAGE = 1000;

export function createHostAlerts(nodeName: NodeName, recorder: EventRecorder, log: Log): HostAlerts {
  const node = { apiVersion: 'v1', kind: resources.nodes.kind, metadata: { name: nodeName, uid: nodeName } };
  const engine = createAlertEngine({
    rules: compiledRules(),
    instance: nodeName,
    onTransition: ({ to, alert: { name, severity, summary, fix } }) => {
      const message = to === 'firing' ? `${name}: ${summary} ${fix}` : `${name}: ${summary}`;
      const type = to === 'firing' && severity !== 'info' ? 'Warning' : 'Normal';
      recorder.event(node, type, to === 'firing' ? 'AlertFiring' : 'AlertResolved', message.slice(0, MAX_MESSAGE));
    },
    clock,
    log,
  });
  return {
    engine,
    conditions: async (present) => {
      // Alerts of severity info do not set the condition.
      const firing = engine.firing().filter(({ severity }) => severity !== 'info');
      if (firing.length > 0) {
        const names = [...new Set(firing.map(({ name, severity }) => `${name} (${severity})`))].join(', ');
        const message = `${names.slice(0, MAX_MESSAGE)}; run "hyperedge alerts" on this host`;
        return [{ type: CONDITION, status: 'True', reason: 'AlertsFiring', message }];
      }
      if (!present.has(CONDITION)) return [];
      return [{ type: CONDITION, status: 'False', reason: 'NoAlerts', message: 'no alert fires' }];
    },
  };
}

/**
 * Endpoints whose metrics the alert rules evaluate. They are on loopback, so that alerts need neither the network nor
 * the API server.
 */
export function alertTargets(settings: Settings, moreMetrics: () => string): AlertTarget[] {
  const { roles, ports, root, router, storage } = settings;
  const master = masterFiles(root);
  const etcd = etcdFiles(root);
  const store = roles.has('master') ? { ca: master.etcdCa, ...master.etcdClient } : { ca: etcd.ca, ...etcd.peer };
  return [
    { job: 'hyperedge-host', scrape: async () => (await hostMetrics(root)) + moreMetrics() },
    ...(roles.has('master') ? [httpsTarget('hyperedge-api', ports.api, { ca: master.caBundle, ...master.admin })] : []),
    ...(ownsStore(settings) && storage === undefined ? [httpsTarget('hyperedge-etcd', ports.etcd, store)] : []),
    ...(router.enabled && router.statsPort !== 0
      ? [target('hyperedge-router', async () => ({ url: `http://127.0.0.1:${router.statsPort}/metrics` }))]
      : []),
  ];
}

/** Reads the certificate files at each scrape, because renewals replace them. */
const httpsTarget = (
  job: string,
  port: number,
  files: { readonly ca: string; readonly cert: string; readonly key: string },
): AlertTarget =>
  target(job, async () => {
    const [ca, cert, key] = await Promise.all([
      readFile(files.ca, 'utf8'),
      readFile(files.cert, 'utf8'),
      readFile(files.key, 'utf8'),
    ]);
    return { url: `https://127.0.0.1:${port}/metrics`, tls: { ca, cert, key } };
  });

const target = (job: string, endpoint: () => Promise<Endpoint>): AlertTarget => ({
  job,
  scrape: async (signal) => scrapeEndpoint(await endpoint(), signal),
});

const startedAtSeconds = clock.nowMs() / 1000;

/** Metrics of the machine and of this process, as the kubelet serves them. */
async function hostMetrics(root: string): Promise<string> {
  const facts = createHostFacts({ root, nowMs: () => clock.nowMs() });
  const [usage, info] = await Promise.all([facts.usage(), facts.info()]);
  const text = new MetricsText();
  text.gauge('machine_memory_bytes', 'Amount of memory installed on the machine.', info.memoryBytes);
  text.gauge('node_memory_working_set_bytes', 'Current working set of the node in bytes', usage.memoryWorkingSetBytes);
  text.gauge('process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', startedAtSeconds);
  return text.toString();
}

/** Content of examples/monitoring/prometheus-rules.yaml, as `hyperedge alerts --rules` prints it. */
export const rulesFile = (): string =>
  '# Rules for the Prometheus operator. Without the operator, use the content of "spec" as a rule file.\n' +
  `# Written by "hyperedge alerts --rules".\n${stringify(prometheusRule(), { lineWidth: 110 })}`;
