/**
 * The temporary control plane of a new cluster. It waits until the configured number of other masters run, each with an
 * API server and a store member. Then it sets the bootstrap status to complete in `kube-system/bootstrap`, as in
 * upstream does.
 */

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import type { Progress } from '../../base/command-line/progress.ts';
import { type Decoded, decodeJson, list, number, object, text as string } from '../../base/decode.ts';
import { ifMissing, ignore, messageOf } from '../../base/errors.ts';
import { type Log, silentLog } from '../../base/log.ts';
import type { ApiClient } from '../../client/index.ts';
import { masterFiles, writeWhole } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { callControl, type HostStatus } from '../control/control.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { etcdAccess } from '../store/access.ts';
import { clusterReport } from '../store/administration.ts';
import { readyMasters } from './handover-state.ts';

const POLL_MS = 2_000;
const RELEASE_MS = 20_000;
const CONFIG_MAP = { namespace: 'kube-system', name: 'bootstrap' } as const;
/** Marker file of a completed handover. It is not in a directory that is deleted with the data. */
const COMPLETE = 'var/lib/hyperedge-bootstrap/complete';

/** State file. `ready`: names of the masters that are ready. */
const STATE = object({ ready: list(string), wanted: number });
export type HandoverState = Decoded<typeof STATE>;

const stateFile = (run: string): string => join(run, 'handover.json');

/** State of a host with a temporary control plane; undefined on other hosts and before the first check. */
export async function readHandover(run: string): Promise<HandoverState | undefined> {
  const content = await readFile(stateFile(run), 'utf8').catch(() => undefined);
  return content === undefined ? undefined : decodeJson(STATE, content, 'handover');
}

export async function isComplete(root: string): Promise<boolean> {
  return readFile(join(root, COMPLETE)).then(() => true, ifMissing(false));
}

export async function writeComplete(root: string): Promise<void> {
  const path = join(root, COMPLETE);
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  await writeFile(path, `${new Date().toISOString()}\n`, { flush: true });
}

export function followHandover(
  settings: Settings,
  wanted: number,
  log: Log,
  progress: Progress,
): { readonly done: Promise<void>; stop(): void } {
  const stopping = new AbortController();
  const done = Promise.withResolvers<void>();
  const follow = async (): Promise<void> => {
    await rm(join(settings.root, COMPLETE), { force: true });
    const opened = await openClient(masterFiles(settings.root).adminKubeconfig, 'hyperedge/handover', {
      clock,
      random,
      log: silentLog,
    });
    let reported = -1;
    try {
      for (
        ;
        !stopping.signal.aborted;
        await wait(POLL_MS, undefined, { signal: stopping.signal }).catch(ignore('an aborted wait ends the loop'))
      ) {
        try {
          const ready = await mastersOf(opened.client, settings);
          if (ready.length !== reported) {
            reported = ready.length;
            const state: HandoverState = { ready, wanted };
            await writeWhole(stateFile(settings.paths.run), JSON.stringify(state));
            progress.note(
              `bootstrap: ${ready.length} of ${wanted} masters run${ready.length === 0 ? '' : `: ${ready.join(', ')}`}`,
            );
          }
          if (ready.length < wanted) continue;
          await declareComplete(opened.client);
          await releaseLeases(settings);
          return done.resolve();
        } catch (error) {
          log.v(1, 'masters not counted', { error: messageOf(error) });
        }
      }
    } finally {
      await opened.close();
    }
  };
  void follow().catch((error: unknown) => log.error('handover to the masters failed', { error: messageOf(error) }));
  return { done: done.promise, stop: () => stopping.abort() };
}

async function mastersOf(client: ApiClient, settings: Settings): Promise<string[]> {
  const access = settings.storage === undefined ? await etcdAccess({ root: settings.root }) : undefined;
  const [nodes, slices, report] = await Promise.all([
    client.resource(resources.nodes).list(),
    client
      .resource(resources.endpointSlices)
      .list({ namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' }),
    access === undefined ? undefined : clusterReport(access),
  ]);
  return readyMasters({
    own: settings.nodeName,
    nodes: nodes.items,
    apiAddresses: slices.items.flatMap(({ endpoints = [] }) => endpoints.flatMap(({ addresses }) => addresses)),
    members: report?.members,
  });
}

async function declareComplete(client: ApiClient): Promise<void> {
  const maps = client.resource(resources.configMaps);
  const object = { metadata: { ...CONFIG_MAP }, data: { status: 'complete' } };
  try {
    await maps.create(object);
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
    await maps.patch(CONFIG_MAP.name, CONFIG_MAP.namespace, 'merge', { data: object.data });
  }
}

/** Stops the controllers while the API server still runs, so that they can release their leases. */
async function releaseLeases({ paths }: Settings): Promise<void> {
  await rm(join(paths.staticPods, 'controller.yaml'), { force: true });
  for (const beganMs = clock.monotonicMs(); clock.monotonicMs() - beganMs < RELEASE_MS; await wait(250)) {
    const { components } = await callControl<HostStatus>(paths.controlSocket, 'GET', '/status');
    if (!components.some(({ name, state }) => name === 'controllers' && state === 'running')) return;
  }
}
