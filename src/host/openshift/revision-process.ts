/** Health checks and restarts of control-plane components for their revisions. */
import { open } from 'node:fs/promises';
import { toUid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Kubelet } from '../../kubelet/index.ts';
import { probeNetwork } from '../../kubelet/io/probing/index.ts';
import type { OperandProcess } from '../../openshift/revisions/index.ts';
import type { ContainerStatus } from '../../runtime/port.ts';
import type { Settings } from '../config/settings.ts';
import { findContainerLogs } from '../control/container-logs.ts';
import { controlPlaneContainers, endContainer, newestRunsFirst } from '../control/restart-component.ts';
import type { HostRuntime } from '../node/runtime.ts';
import { systemClock as clock } from '../process/process.ts';

const PROBE_MS = 3_000;
/** Number of exits after a start with which a component counts as failed. */
const CRASHES = 2;
const LOG_TAIL_BYTES = 8 * 1024;
const MAX_MESSAGE = 500;

export interface ProcessOptions {
  readonly settings: Settings;
  readonly runtime: HostRuntime;
  readonly kubelet: () => Pick<Kubelet, 'forgetBackOff'> | undefined;
  readonly component: 'etcd' | 'api' | 'controllers';
}

export function operandProcess({ settings, runtime, kubelet, component }: ProcessOptions): OperandProcess {
  let ended = new Set<string>();
  /** IDs of containers that are older than `sinceMs`. They are determined once, because the clock may be set later. */
  let older = new Set<string>();
  let since = 0;
  const containers = async (): Promise<ContainerStatus[]> =>
    newestRunsFirst(
      (await controlPlaneContainers(runtime)).filter(({ name }) => name === component),
      clock.nowMs(),
    );
  return {
    async health(sinceMs) {
      const all = await containers();
      if (since !== sinceMs) {
        ended = new Set();
        older = new Set(all.filter(({ createdAtMs }) => createdAtMs < sinceMs).map(({ id }) => id));
      }
      since = sinceMs;
      const runs = all.filter(({ id }) => !older.has(id));
      for (const each of runs) {
        if (each.state !== 'exited' || ended.has(each.id)) continue;
        ended.add(each.id);
        // The next attempt decides whether the revision has failed, so it must not be delayed by the back-off.
        kubelet()?.forgetBackOff(toUid(each.labels['io.kubernetes.pod.uid']));
      }
      if (ended.size >= CRASHES) {
        const line = await lastError(settings.paths.podLogs, component);
        return { state: 'crashing', message: `${component} ended ${ended.size} times${line}` };
      }
      if (runs[0]?.state !== 'running') {
        return {
          state: 'starting',
          message: `${component} does not run${await lastError(settings.paths.podLogs, component)}`,
        };
      }
      try {
        await probe(settings, component);
        return { state: 'healthy', message: '' };
      } catch (error) {
        const line = await lastError(settings.paths.podLogs, component);
        return {
          state: 'starting',
          message: `${component} is not ready: ${messageOf(error)}${line}`.slice(0, MAX_MESSAGE),
        };
      }
    },
    async restart() {
      const [newest] = await containers();
      const present = kubelet();
      if (newest !== undefined && present !== undefined) await endContainer(runtime, present, newest);
    },
  };
}

async function probe({ ports }: Settings, component: ProcessOptions['component']): Promise<void> {
  if (component === 'etcd') return probeNetwork.connect('127.0.0.1', ports.etcd, PROBE_MS);
  const [port, path] = component === 'api' ? [ports.api, '/readyz'] : [ports.controllers, '/healthz'];
  const url = new URL(`https://127.0.0.1:${port}${path}`);
  const { code, body } = await probeNetwork.httpGet(url, {}, AbortSignal.timeout(PROBE_MS));
  if (code < 200 || code >= 400) throw new Error(`${path} answers ${code}: ${body.slice(0, MAX_MESSAGE)}`);
}

/** The last error in the newest log that contains one, as `; <line>`; otherwise an empty string. */
async function lastError(podLogs: string, component: string): Promise<string> {
  const files = await findContainerLogs(podLogs, `master-${component}`, component, clock.nowMs()).catch(() => []);
  for (const file of files.slice(-2).reverse()) {
    const lines = (await tailOf(file).catch(() => '')).split('\n').filter((line) => line !== '');
    const texts = lines.map((line) => line.replace(/^\S+ std(?:out|err) [FP] /, ''));
    const found = texts.filter((text) => /\b(error|fatal)\b|^hyperedge:/i.test(text)).at(-1);
    if (found !== undefined) return `; ${found.slice(0, MAX_MESSAGE)}`;
  }
  return '';
}

async function tailOf(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const start = Math.max(0, size - LOG_TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
    return buffer.subarray(0, bytesRead).toString('utf8');
  } finally {
    await file.close();
  }
}
