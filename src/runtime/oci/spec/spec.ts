/**
 * Builds an OCI runtime specification (config.json) from the kubelet's container configuration. Pure: everything about
 * the host is an argument.
 */

import { withFields } from '../../../api/podspec/fields/field.ts';
import { CONTAINER_FIELDS, SECURITY_FIELDS } from '../../../api/podspec/fields/table.ts';
import { type ContainerConfig, type LinuxResources, RuntimeError } from '../../port.ts';
import type { SandboxRecord } from '../containers/records.ts';
import type { ImageConfig } from '../port.ts';
import type { OwnLimits } from '../processes.ts';
import { containerCapabilities, hasCapability } from './capabilities.ts';
import type { OciDevice } from './devices.ts';
import { type OciMount, rootPropagation } from './mounts.ts';
import { defaultSeccompProfile } from './seccomp.ts';
import type { ContainerUser } from './users.ts';

const DEFAULT_PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const OPEN_FILES = 1_048_576;

export type CgroupDriver = 'cgroupfs' | 'systemd';

/**
 * Paths of namespaces to join. Undefined and `host` mean the host's namespace; `new` means a new namespace for the
 * container.
 */
export interface JoinedNamespaces {
  readonly net: string | undefined;
  readonly ipc: string | undefined;
  readonly uts: string | undefined;
  readonly user: string | undefined;
  readonly pid: string | 'new' | 'host';
}

export interface SpecInput {
  readonly containerId: string;
  readonly config: ContainerConfig;
  readonly sandbox: SandboxRecord;
  readonly image: ImageConfig;
  readonly user: ContainerUser;
  readonly mounts: readonly OciMount[];
  readonly devices: readonly (OciDevice & { readonly permissions: string })[];
  readonly namespaces: JoinedNamespaces;
  /** Path of the root, absolute or relative to the bundle. */
  readonly rootPath: string;
  readonly readOnlyRoot: boolean;
  readonly driver: CgroupDriver;
  readonly pureV2: boolean;
  readonly own: OwnLimits;
  readonly nodeArch: string;
  /** Name of the AppArmor profile; undefined for none. */
  readonly appArmor: string | undefined;
  /** Content of `security.seccompProfile`. */
  readonly seccomp: object | undefined;
}

/** The field `process` of the runtime specification, which exec modifies. */
export interface OciProcess {
  readonly terminal: boolean;
  readonly user: ContainerUser;
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly [field: string]: unknown;
}

/** `warnings` name requested limits that this process may not grant and that were reduced to its own. */
export function buildSpec(input: SpecInput): { readonly spec: object; readonly warnings: readonly string[] } {
  const { config, sandbox, own } = input;
  const { security } = config;
  const warnings: string[] = [];
  const capabilities = containerCapabilities(security, own.capabilities);
  const mayRaise = hasCapability(own.capabilities, 'SYS_RESOURCE');

  let { oomScoreAdj } = config.resources;
  if (oomScoreAdj < own.oomScoreAdj && !mayRaise) {
    warnings.push(`oom_score_adj ${oomScoreAdj} needs CAP_SYS_RESOURCE; ${own.oomScoreAdj} is used`);
    oomScoreAdj = own.oomScoreAdj;
  }
  let openFiles = OPEN_FILES;
  if (openFiles > own.openFilesHard && !mayRaise) {
    warnings.push(`a limit of ${OPEN_FILES} open files needs CAP_SYS_RESOURCE; ${own.openFilesHard} is used`);
    openFiles = own.openFilesHard;
  }

  const process = {
    user: input.user,
    args: commandLine(config, input.image),
    env: environment(config, input.image, sandbox.hostname),
    cwd: input.image.workingDir || '/',
    capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    rlimits: [{ type: 'RLIMIT_NOFILE', hard: openFiles, soft: openFiles }],
    oomScoreAdj,
    ...(input.appArmor === undefined ? {} : { apparmorProfile: input.appArmor }),
  };
  const propagation = rootPropagation(config.mounts);
  const linux = {
    namespaces: namespaceList(input),
    ...idMappings(sandbox),
    cgroupsPath: cgroupsPath(input.driver, sandbox.cgroupParent, input.containerId),
    resources: {
      ...linuxResources(config.resources, input.pureV2),
      // Always set, because systemd applies its own default to a scope without a value.
      pids: { limit: config.resources.pidsLimit > 0 ? config.resources.pidsLimit : -1 },
      devices: security.privileged
        ? [{ allow: true, access: 'rwm' }]
        : [
            { allow: false, access: 'rwm' },
            ...input.devices.map(({ type, major, minor, permissions }) => ({
              allow: true,
              type,
              major,
              minor,
              access: permissions,
            })),
          ],
    },
    devices: input.devices.map(({ permissions: _, ...device }) => device),
    ...seccompFilter(input, capabilities),
    ...(propagation === undefined ? {} : { rootfsPropagation: propagation }),
    ...(input.namespaces.net !== undefined || input.namespaces.ipc !== undefined ? { sysctl: sandbox.sysctls } : {}),
  };
  const spec = {
    ociVersion: '1.0.2',
    process,
    root: { path: input.rootPath, readonly: input.readOnlyRoot },
    ...(input.namespaces.uts === undefined ? {} : { hostname: sandbox.hostname }),
    mounts: input.mounts,
    linux,
    annotations: {},
  };
  const withContainer = withFields(spec, CONTAINER_FIELDS, config, 'oci');
  return { spec: withFields(withContainer, SECURITY_FIELDS, security, 'oci'), warnings };
}

function seccompFilter({ config, seccomp, nodeArch }: SpecInput, capabilities: readonly string[]): object {
  if (config.security.privileged || config.security.seccomp === 'unconfined') return {};
  if (config.security.seccomp === 'localhost') return { seccomp };
  return { seccomp: defaultSeccompProfile(capabilities, nodeArch) };
}

/** Command line from the image's entrypoint and cmd and the pod's command and args, by the rules of Kubernetes. */
function commandLine(config: ContainerConfig, image: ImageConfig): readonly string[] {
  const line =
    config.command !== undefined && config.command.length > 0
      ? [...config.command, ...(config.args ?? [])]
      : [...image.entrypoint, ...(config.args !== undefined && config.args.length > 0 ? config.args : image.cmd)];
  if (line.length === 0)
    throw new RuntimeError('create-failed', 'no command specified: neither the pod nor the image names one');
  return line;
}

function environment(config: ContainerConfig, image: ImageConfig, hostname: string): readonly string[] {
  const variables = new Map<string, string>();
  const set = (line: string): void => {
    const equals = line.indexOf('=');
    if (equals > 0) variables.set(line.slice(0, equals), line.slice(equals + 1));
  };
  set(DEFAULT_PATH);
  if (hostname !== '') set(`HOSTNAME=${hostname}`);
  if (config.tty) set('TERM=xterm');
  for (const line of image.env) set(line);
  for (const { name, value } of config.env) variables.set(name, value);
  return [...variables].map(([name, value]) => `${name}=${value}`);
}

function namespaceList({ namespaces, pureV2 }: SpecInput): readonly object[] {
  const list: object[] = [{ type: 'mount' }];
  if (namespaces.pid === 'new') list.push({ type: 'pid' });
  else if (namespaces.pid !== 'host') list.push({ type: 'pid', path: namespaces.pid });
  if (namespaces.net !== undefined) list.push({ type: 'network', path: namespaces.net });
  if (namespaces.ipc !== undefined) list.push({ type: 'ipc', path: namespaces.ipc });
  if (namespaces.uts !== undefined) list.push({ type: 'uts', path: namespaces.uts });
  if (namespaces.user !== undefined) list.push({ type: 'user', path: namespaces.user });
  if (pureV2) list.push({ type: 'cgroup' });
  return list;
}

function idMappings({ userNamespace }: SandboxRecord): object {
  if (userNamespace === undefined) return {};
  const mappings = [{ containerID: 0, hostID: userNamespace.hostId, size: userNamespace.length }];
  return { uidMappings: mappings, gidMappings: mappings };
}

/**
 * cgroupfs: a path below the pod's; systemd: `slice:prefix:name`, from which runc makes the scope `prefix-name.scope`.
 */
export function cgroupsPath(driver: CgroupDriver, parent: string, id: string): string {
  return driver === 'systemd' ? `${parent.split('/').at(-1)}:hyperedge:${id}` : `${parent.replace(/\/+$/, '')}/${id}`;
}

/** Page sizes as in the names of the kernel's files: `2MB`, `1GB`. */
function hugePageLimit(each: NonNullable<LinuxResources['hugePageLimits']>[number]): object {
  const megabytes = each.pageSizeBytes / 1024 ** 2;
  const pageSize =
    megabytes >= 1024 ? `${megabytes / 1024}GB` : megabytes >= 1 ? `${megabytes}MB` : `${megabytes * 1024}KB`;
  return { pageSize, limit: each.limitBytes };
}

/** The specification's `resources`. Swap is disabled on v2 only, because v1 may lack the control file. */
export function linuxResources(resources: LinuxResources, pureV2: boolean): Record<string, object> {
  const cpu = {
    ...(resources.cpuShares > 0 ? { shares: resources.cpuShares } : {}),
    ...(resources.cpuPeriod > 0 ? { period: resources.cpuPeriod } : {}),
    ...(resources.cpuQuota > 0 ? { quota: resources.cpuQuota } : {}),
    ...(resources.cpusetCpus === undefined ? {} : { cpus: resources.cpusetCpus }),
    ...(resources.cpusetMems === undefined ? {} : { mems: resources.cpusetMems }),
  };
  const limit = resources.memoryLimitBytes;
  const unified = pureV2 ? resources.unified : undefined;
  const swap = pureV2 && unified?.['memory.swap.max'] === undefined ? { swap: limit } : {};
  return {
    cpu,
    ...(limit > 0 ? { memory: { limit, ...swap } } : {}),
    ...(resources.hugePageLimits === undefined
      ? {}
      : { hugepageLimits: resources.hugePageLimits.map((each) => hugePageLimit(each)) }),
    ...(unified === undefined ? {} : { unified }),
    ...(resources.pidsLimit > 0 ? { pids: { limit: resources.pidsLimit } } : {}),
  };
}
