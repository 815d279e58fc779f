/** The daemon on files below a temporary directory, with a simulated API server, units and kernel. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { ApiError } from '../../../../src/api/meta/status.ts';
import { silentLog } from '../../../../src/base/log.ts';
import type { ApiClient } from '../../../../src/client/types.ts';
import { systemClock } from '../../../../src/host/process/process.ts';
import { watchPath } from '../../../../src/kubelet/io/host-facts/index.ts';
import { createMachineConfigDaemon } from '../../../../src/openshift/machine-config/daemon/index.ts';
import type { HostUnits } from '../../../../src/openshift/machine-config/daemon/port.ts';
import { createDisk } from '../../../../src/openshift/machine-config/io/disk.ts';
import { createHostFiles } from '../../../../src/openshift/machine-config/io/host-files.ts';
import { createHostKernel } from '../../../../src/openshift/machine-config/io/kernel.ts';
import { createDirectoryWatch } from '../../../../src/openshift/machine-config/io/watch.ts';
import type { MachineConfigSpec } from '../../../../src/openshift/machine-config/kinds/machine-config-types.ts';
import { localInformers } from '../../../client/local-informers.ts';

export const PREFIX = 'machineconfiguration.openshift.io/';
const NAME = 'host-1';

export interface World {
  readonly root: string;
  /** Executed steps. */
  readonly steps: string[];
  readonly events: string[];
  readonly configs: Map<string, MachineConfigSpec>;
  readonly pools: Map<string, Readonly<Record<string, string>>>;
  ready: boolean;
  settleMs: number;
  /** Addresses of the host. Its Node has 192.0.2.1. */
  addresses: readonly string[];
  reachable: boolean;
  bootId: string;
  cmdline: string;
  /** Name of a step that throws when it is executed. */
  failing: string | undefined;
  policies: unknown;
  annotation(name: string): string;
  annotate(annotations: Readonly<Record<string, string>>): void;
  desire(config: string): void;
  /** Starts the daemon. A running one is stopped as if its process was killed. */
  restart(): Promise<void>;
  until(what: () => boolean | Promise<boolean>): Promise<void>;
  read(path: string): Promise<string | undefined>;
  write(path: string, text: string): Promise<void>;
}

const ignition = { version: '3.2.0' };

export const fileConfig = (files: Readonly<Record<string, string>>, more: object = {}): MachineConfigSpec => ({
  config: {
    ignition,
    storage: {
      files: Object.entries(files).map(([path, text]) => ({
        path,
        contents: { source: `data:,${encodeURIComponent(text)}` },
      })),
    },
    ...more,
  },
});

export async function withWorld(act: (world: World) => Promise<void>, readyTimeoutMs = 1_500): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'mc-daemon-'));
  const informers = localInformers();
  const node = (): Node => (informers.get('nodes', NAME) ?? {}) as Node;
  const put = (annotations: Readonly<Record<string, string>>): void => {
    const { metadata } = node();
    const addresses = [{ type: 'InternalIP', address: '192.0.2.1' }];
    const status = { addresses, conditions: [{ type: 'Ready', status: world.ready ? 'True' : 'False' }] };
    const all = { ...metadata?.annotations, ...annotations };
    informers.set('nodes', { kind: 'Node', metadata: { name: NAME, uid: 'u', annotations: all }, status } as Node);
  };
  const answer = <T>(value: () => T | undefined, what: string): T => {
    if (!world.reachable) throw new ApiError('ServiceUnavailable', 'no route to host');
    const found = value();
    if (found === undefined) throw new ApiError('NotFound', `${what} not found`);
    return found;
  };
  const client = {
    resource: ({ plural }: { plural: string }) => ({
      get: async (name: string) =>
        answer(() => {
          if (plural === 'machineconfigs') {
            const spec = world.configs.get(name);
            return spec === undefined ? undefined : { metadata: { name }, spec };
          }
          if (plural === 'leases') return { spec: { renewTime: new Date().toISOString() } };
          const annotations = world.pools.get(name);
          return annotations === undefined ? undefined : { metadata: { name, annotations } };
        }, name),
      list: async () => {
        put({});
        return answer(() => ({ items: [node()] }), NAME);
      },
      patch: async (_name: string, _namespace: undefined, _type: string, body: Node) =>
        answer(() => {
          put(body.metadata?.annotations ?? {});
          return node();
        }, NAME),
    }),
    request: async () => answer(() => world.policies, 'machineconfigurations "cluster"'),
  } as unknown as ApiClient;
  const step = (name: string) => async (unit?: string) => {
    const text = unit === undefined ? name : `${name} ${unit}`;
    world.steps.push(text);
    if (world.failing === text) throw new Error(`${text}: job ended as failed`);
  };
  const units: HostUnits = {
    daemonReload: step('daemon-reload'),
    reload: step('reload'),
    restart: step('restart'),
    tryRestart: step('try-restart'),
    stop: step('stop'),
    reboot: step('reboot'),
  };
  let running: ReturnType<typeof createMachineConfigDaemon> | undefined;
  const world: World = {
    root,
    steps: [],
    events: [],
    configs: new Map(),
    pools: new Map(),
    ready: true,
    settleMs: 30,
    addresses: ['127.0.0.1', '192.0.2.1'],
    reachable: true,
    bootId: 'boot-1',
    cmdline: 'quiet',
    failing: undefined,
    policies: undefined,
    annotation: (name) => node().metadata?.annotations?.[PREFIX + name] ?? '',
    annotate: put,
    desire: (config) => put({ [`${PREFIX}desiredConfig`]: config }),
    async restart() {
      await running?.stop();
      const disk = createDisk(root);
      running = createMachineConfigDaemon({
        nodeName: NAME,
        informers: informers.factory,
        client,
        recorder: {
          event: (_object, type, reason, message) => world.events.push(`${type} ${reason} ${message}`),
          stop: async () => {},
        },
        files: createHostFiles(disk, createDirectoryWatch(root, watchPath)),
        units,
        kernel: {
          ...createHostKernel(disk, { programs: false }),
          bootId: async () => world.bootId,
          arguments: async () => world.cmdline,
        },
        parse: { inflate: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }) },
        restartKubelet: step('restart-kubelet'),
        reloadImages: step('reload-images'),
        readyTimeoutMs,
        settleMs: world.settleMs,
        addresses: () => world.addresses,
        clock: systemClock,
        log: silentLog,
      });
      await running.start();
    },
    async until(what) {
      const end = Date.now() + 20_000;
      while (!(await what())) {
        if (Date.now() > end)
          throw new Error(`not within 20 s: ${what}; ${JSON.stringify(node().metadata?.annotations)} ${world.events}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    read: (path) => readFile(join(root, path), 'utf8').catch(() => undefined),
    async write(path, text) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    },
  };
  try {
    put({});
    await act(world);
  } finally {
    await running?.stop();
    await rm(root, { recursive: true, force: true });
  }
}
