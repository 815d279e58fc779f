/** Values that several facts of one run need: settings, reachable directories, links and the host's status. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import { readAreas, readLinks } from '../../doctor/io/machine/index.ts';
import type { AreaFacts, LinkFacts, RingMember } from '../../doctor/port.ts';
import { callAgent } from '../../gossip/agent/index.ts';
import type { AgentMember } from '../../gossip/membership/agent-port.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { callControl, type HostStatus } from '../control/control.ts';
import { absentFact, readOnce } from './gather.ts';

export interface DoctorOptions {
  /** Root of the installation. */
  readonly root: string;
  /** Directory that contains /proc, /sys, /etc, /boot and /run of the machine. It is `/` except in tests. */
  readonly machine: string;
  /** Command that starts `doctor-probe`. */
  readonly helper: readonly string[];
  readonly nowMs: number;
}

export interface DoctorContext extends DoctorOptions {
  readonly areas: () => Promise<readonly AreaFacts[]>;
  /** Throws CodedError 'hung' if the file system of one of the installation's directories does not answer. */
  readonly reachable: () => Promise<void>;
  /** Settings of the host. Throws CodedError 'bad-config'. */
  readonly settings: () => Promise<Settings>;
  /** Whether the host has started before and written its configuration files. */
  readonly installed: () => Promise<boolean>;
  readonly status: () => Promise<HostStatus>;
  readonly links: () => Promise<readonly LinkFacts[]>;
  /** Members of the gossip ring. Throws CodedError 'absent' if this host is in no ring. */
  readonly ring: () => Promise<readonly RingMember[]>;
}

/** Directories whose file system is examined, and their content. */
const AREAS = [
  { path: 'etc/origin', what: 'configuration' },
  { path: 'var/lib/origin', what: 'state of pods' },
  { path: 'var/lib/origin/images', what: 'images' },
  { path: 'var/log', what: 'logs' },
  { path: 'run', what: 'temporary files' },
] as const;
const CONTROL_MS = 3000;

export function createContext(options: DoctorOptions): DoctorContext {
  const { root, machine } = options;
  const areas = readOnce(() =>
    readAreas(
      machine,
      AREAS.map(({ path, what }) => ({ directory: join(root, path), what })),
    ),
  );
  const reachable = readOnce(async () => {
    const hung = (await areas()).find(({ problem }) => problem !== undefined);
    if (hung !== undefined) throw new CodedError('hung', `${hung.directory}: ${hung.problem}`);
  });
  const settings = readOnce(async () => {
    await reachable();
    return loadSettings({ root });
  });
  const installed = readOnce(async () => {
    await reachable();
    return existsSync(join(root, 'etc/origin/node/node-config.yaml'));
  });
  const status = readOnce(async () => {
    const { paths } = await settings();
    return callControl<HostStatus>(paths.controlSocket, 'GET', '/status', CONTROL_MS);
  });
  const ring = readOnce(async () => {
    const { paths, gossip } = await settings();
    if (!gossip.enabled || !existsSync(paths.agentSocket))
      throw absentFact('this host is not a member of a gossip ring');
    return (await callAgent<readonly AgentMember[]>(paths.agentSocket, 'members', {}, CONTROL_MS)).map(memberOf);
  });
  return { ...options, areas, reachable, settings, installed, status, ring, links: readOnce(readLinks) };
}

const memberOf = ({ name, address, state, self, version, clockOffsetMs }: AgentMember): RingMember => ({
  name,
  address,
  state,
  self,
  version,
  clockOffsetMs,
});
