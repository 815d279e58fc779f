/**
 * Sections with data of the cluster. Pods and events come from the kubelet, so they do not require the API server.
 * Objects and metrics come from the API server.
 */
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { ApiClient } from '../../client/index.ts';
import type { KubeletReport } from '../../kubelet/index.ts';
import type { Section } from '../../support-bundle/port.ts';
import { callControl } from '../control/control.ts';
import { collectObjects, copy } from './cluster.ts';
import { collectFile, filesBelow } from './files.ts';
import type { SectionContext } from './sections.ts';
import { collectStoreMetrics } from './store-metrics.ts';

const MIB = 1 << 20;
const CONTROL_MS = 8000;
const MAX_RECORDS = 600;

export interface BundleAccess {
  nodeName(): Promise<string>;
  /** Returns a client. Throws CodedError 'no-api' with the reason if no API server answers. */
  client(): Promise<ApiClient>;
}

export function clusterSections({ access, paths, reachable }: SectionContext): Section[] {
  const pods: Section = {
    id: 'pods',
    title: 'Pods and events of this host, from its kubelet',
    timeoutMs: 45_000,
    maxBytes: 24 * MIB,
    collect: async (sink, signal) => {
      try {
        const { pods: items, events } = await callControl<KubeletReport>(
          paths.controlSocket,
          'GET',
          '/kubelet',
          CONTROL_MS,
        );
        await sink.object('pods/pods.yaml', { apiVersion: 'v1', kind: 'PodList', items });
        await sink.object('pods/events.yaml', events);
      } catch (error) {
        sink.missing('the kubelet', `${messageOf(error)}; the records on disk are the last known state`);
      }
      await reachable();
      // Records of the container runtime, which exist even if the host process does not run.
      for (const kind of ['sandboxes', 'containers'])
        for (const { path } of (await filesBelow(join(paths.containers, kind), MAX_RECORDS * 20, 1)).filter((file) =>
          file.path.endsWith('/record.json'),
        ))
          await collectFile(sink, path, `pods/${kind}/${path.split('/').at(-2)}.yaml`, signal, {
            format: 'document',
            maxBytes: MIB,
          });
    },
  };
  const metrics: Section = {
    id: 'metrics',
    title: 'Metrics',
    timeoutMs: 60_000,
    maxBytes: 24 * MIB,
    collect: async (sink, signal) => {
      await collectStoreMetrics(sink, paths.masterConfig, signal);
      const collection = { client: await access.client(), sink, signal, print: () => {}, prefix: '' };
      const node = `/api/v1/nodes/${encodeURIComponent(await access.nodeName())}/proxy`;
      await copy(collection, 'metrics of the API server', '/metrics', 'metrics/api.txt');
      await copy(collection, 'health of the API server', '/readyz?verbose', 'metrics/readyz.txt');
      await copy(collection, 'metrics of the kubelet', `${node}/metrics`, 'metrics/kubelet.txt');
      await copy(collection, 'statistics of pods', `${node}/stats/summary`, 'metrics/pods.json');
    },
  };
  const objects: Section = {
    id: 'cluster',
    title: 'Objects of the cluster',
    timeoutMs: 120_000,
    maxBytes: 64 * MIB,
    collect: async (sink, signal) => {
      const collection = { client: await access.client(), sink, signal, print: () => {}, prefix: 'cluster/' };
      await collectObjects(collection, true);
    },
  };
  return [pods, metrics, objects];
}

export const noApi = (reason: string): CodedError =>
  new CodedError('no-api', `the API server does not answer: ${reason}`);
