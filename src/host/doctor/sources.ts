/** The sources of all facts, with their time limits. */
import { join } from 'node:path';
import {
  readCgroups,
  readClock,
  readConflicts,
  readDenials,
  readEntropy,
  readFirewall,
  readFsync,
  readIdentity,
  readJournal,
  readMemory,
  readMmc,
  readModules,
  readPaths,
  readPower,
  readProcessor,
  readResolution,
  readRoutes,
  readSysctls,
  readTimeZone,
  readWrites,
} from '../../doctor/io/machine/index.ts';
import type { FactSources, Facts, FlashFacts, Source } from '../../doctor/port.ts';
import { createHostFacts } from '../../kubelet/io/host-facts/index.ts';
import { RELEASED_MS, readIfPresent } from '../../pki/index.ts';
import { pathsBelow } from '../config/paths.ts';
import { readHardware } from '../hardware/index.ts';
import { readKernelFeatures } from '../hardware/kernel.ts';
import { systemClock as clock } from '../process/process.ts';
import { certificateFacts, kubeconfigFacts } from './certificate-facts.ts';
import { apiFacts, deployFacts, nodeFacts, podFacts, snapshotFacts, storeFacts, updateFacts } from './cluster-facts.ts';
import type { DoctorContext } from './context.ts';
import {
  configurationFacts,
  hostFacts,
  portFacts,
  privateFileFacts,
  processFacts,
  programFacts,
  remainFacts,
  unitFacts,
} from './host-facts.ts';
import { podProbeFacts, registryFacts } from './network-facts.ts';
import { staticPodFacts } from './static-pod-facts.ts';

/** Time limits for facts. Even the shortest limit exceeds the probe of a directory, for which many facts wait. */
const QUICK_MS = 10_000;
const LOCAL_MS = 15_000;
const SLOW_MS = 30_000;

const source = <T>(timeoutMs: number, read: (signal: AbortSignal) => Promise<T>): Source<T> => ({ timeoutMs, read });

export function factSources(context: DoctorContext): FactSources {
  const { machine, root, helper, nowMs, reachable, settings, links, ring, areas } = context;
  return {
    host: source(QUICK_MS, () => hostFacts(context)),
    configuration: source(QUICK_MS, () => configurationFacts(context)),
    cgroups: source(QUICK_MS, () => readCgroups(machine)),
    kernel: source(QUICK_MS, () => kernelFacts(machine)),
    sysctls: source(QUICK_MS, () => readSysctls(machine)),
    firewall: source(LOCAL_MS, () => readFirewall(machine)),
    ports: source(LOCAL_MS, () => portFacts(context)),
    clock: source(LOCAL_MS, async () => {
      await reachable();
      const floorMs = Date.parse(((await readIfPresent(pathsBelow(root).timeFloor)) ?? '').trim());
      return readClock(machine, { nowMs, releasedMs: RELEASED_MS, floorMs: Number.isNaN(floorMs) ? 0 : floorMs });
    }),
    timeZone: source(QUICK_MS, () => readTimeZone(machine)),
    identity: source(QUICK_MS, () => identityFacts(context)),
    resolution: source(LOCAL_MS, async () => {
      const { hostName } = await readIdentity(machine);
      return readResolution(machine, hostName);
    }),
    links: source(QUICK_MS, async () => [...(await links())]),
    routes: source(QUICK_MS, () => readRoutes(machine)),
    paths: source(SLOW_MS, async () => {
      const others = (await ring()).filter(({ self, state }) => !self && state === 'alive');
      return readPaths(
        others.map(({ name, address }) => ({ name, address: hostOf(address) })),
        await links(),
      );
    }),
    conflicts: source(LOCAL_MS, async () => {
      const [{ nodeIp, nodeIpIsBridge }, [route]] = [await settings(), await readRoutes(machine)];
      if (route === undefined || nodeIpIsBridge || nodeIp.includes(':')) return [];
      return readConflicts(nodeIp, route.link).catch(() => []);
    }),
    areas: source(LOCAL_MS, async () => [...(await areas())]),
    fsync: source(SLOW_MS, async () => {
      await reachable();
      return readFsync(helper, join(root, 'var/lib/origin'));
    }),
    flash: source(SLOW_MS, () => flashFacts(machine)),
    writes: source(QUICK_MS, () => readWrites(machine)),
    memory: source(QUICK_MS, () => readMemory(machine)),
    processor: source(QUICK_MS, () => readProcessor(machine)),
    power: source(QUICK_MS, () => readPower(machine)),
    entropy: source(QUICK_MS, () => readEntropy(machine)),
    programs: source(QUICK_MS, () => programFacts()),
    hostProcess: source(LOCAL_MS, () => processFacts(context)),
    unit: source(LOCAL_MS, () => unitFacts(context)),
    denials: source(LOCAL_MS, () => readDenials(machine)),
    journal: source(LOCAL_MS, () => readJournal(machine)),
    leftovers: source(QUICK_MS, () => remainFacts(context)),
    privateFiles: source(QUICK_MS, () => privateFileFacts(context)),
    certificates: source(QUICK_MS, () => certificateFacts(context)),
    kubeconfigs: source(LOCAL_MS, () => kubeconfigFacts(context)),
    ring: source(LOCAL_MS, async () => [...(await ring())]),
    api: source(LOCAL_MS, () => apiFacts(context)),
    nodes: source(LOCAL_MS, () => nodeFacts(context)),
    store: source(SLOW_MS, () => storeFacts(context)),
    pods: source(SLOW_MS, () => podFacts(context)),
    registries: source(LOCAL_MS, () => registryFacts(context)),
    podProbes: source(SLOW_MS, () => podProbeFacts(context)),
    staticPods: source(LOCAL_MS, () => staticPodFacts(context)),
    deploy: source(LOCAL_MS, () => deployFacts(context)),
    snapshots: source(LOCAL_MS, () => snapshotFacts(context)),
    update: source(LOCAL_MS, () => updateFacts(context)),
  };
}

/**
 * For an installation below another root than `/`, the machine-id is the one that its kubelet reports, which is derived
 * from the root.
 */
async function identityFacts({ machine, root }: DoctorContext): Promise<Facts['identity']> {
  const identity = await readIdentity(machine);
  if (machine !== '/' || root === '/') return identity;
  const { machineId } = await createHostFacts({ root, nowMs: () => clock.nowMs() }).info();
  return { ...identity, machineId };
}

async function kernelFacts(machine: string): Promise<Facts['kernel']> {
  const { release, namespaces, seccompActions, options } = await readKernelFeatures(machine);
  return { release, namespaces, seccompActions, modules: await readModules(machine, release, options) };
}

/**
 * Wear of eMMC as reported by the kernel, and SMART of other disks. SMART takes seconds and is read only if `machine`
 * is `/`.
 */
async function flashFacts(machine: string): Promise<FlashFacts[]> {
  const mmc = await readMmc(machine);
  if (machine !== '/') return mmc;
  const { disks } = await readHardware();
  return [
    ...mmc,
    ...disks.flatMap(({ device, model = '', smart }): FlashFacts[] =>
      smart === undefined
        ? []
        : [{ device, model, usedPercent: smart.percentageUsed, reserve: undefined, smartPassed: smart.passed }],
    ),
  ];
}

/** Host of an address such as `10.0.0.1:7946` or `[fd00::1]:7946`. */
const hostOf = (address: string): string => address.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
