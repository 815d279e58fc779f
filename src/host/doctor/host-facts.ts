/** Facts of this host's installation: configuration, ports, processes, systemd unit, and remains of pods. */
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import { readListeners, readModel, readRemains, runProgram, textOf } from '../../doctor/io/machine/index.ts';
import type { Facts, HostFacts, PortFacts, ProcessFacts } from '../../doctor/port.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import { checkPrivateFiles } from '../certificates/private-files.ts';
import { SERVICE } from '../install/layout.ts';
import { lastError, systemdRuns } from '../install/service.ts';
import { missingPrograms } from '../node/host-programs.ts';
import { embeddedHelpers } from '../process/helper-programs.ts';
import type { DoctorContext } from './context.ts';
import { absentFact } from './gather.ts';

const PROGRAM_MS = 4000;
/** Time in which a new host process may still create the containers of the control plane. */
const START_MS = 120_000;

export async function hostFacts({ settings, installed, root, machine, status }: DoctorContext): Promise<HostFacts> {
  const { nodeName, nodeIp, nodeIpIsBridge, nodeIpGiven, roles, network, bootstrapFile } = await settings();
  const { clusterCidrs, serviceCidrs, bridge } = network;
  return {
    root,
    nodeName,
    nodeIp,
    nodeIpIsBridge,
    clusterCidrs,
    serviceCidrs,
    bridge,
    bootstrapFile,
    nodeIpGiven: nodeIpGiven !== undefined,
    pid: await status().then(
      ({ pid }) => pid,
      () => undefined,
    ),
    roles: [...roles],
    installed: await installed(),
    model: await readModel(machine),
  };
}

export async function configurationFacts({
  settings,
  reachable,
  root,
}: DoctorContext): Promise<Facts['configuration']> {
  await reachable();
  const file = join(root, 'etc/origin/bootstrap.yaml');
  try {
    return { file: (await settings()).bootstrapFile, problem: undefined };
  } catch (error) {
    const problem = messageOf(error);
    const named = /^(.+\.ya?ml):\d+: /.exec(problem)?.[1];
    return { file: named?.startsWith(`${file}.d/`) === true ? named : file, problem };
  }
}

export async function portFacts(context: DoctorContext): Promise<PortFacts> {
  const { settings, machine } = context;
  const { ports, roles, storage, gossip, router } = await settings();
  const tcp = (port: number, what: string, field: string): PortFacts['wanted'] => [
    { protocol: 'tcp', port, what, field },
  ];
  const wanted = [
    ...tcp(ports.kubelet, 'the kubelet', 'ports.kubelet'),
    ...tcp(ports.balancer, 'the API balancer', 'ports.balancer'),
    ...(roles.has('etcd') && storage === undefined
      ? [...tcp(ports.etcd, 'etcd', 'ports.etcd'), ...tcp(ports.etcdPeer, 'etcd peers', 'ports.etcdPeer')]
      : []),
    ...(roles.has('master')
      ? [
          ...tcp(ports.api, 'the API server', 'ports.api'),
          ...tcp(ports.controllers, 'the controllers', 'ports.controllers'),
          ...tcp(ports.machineConfigServer, 'the machine config server', 'ports.machineConfigServer'),
        ]
      : []),
    ...(gossip.configured
      ? [
          ...tcp(gossip.port, 'gossip', 'gossip.port'),
          { ...UDP, port: gossip.port, what: 'gossip', field: 'gossip.port' },
        ]
      : []),
    ...(router.enabled ? tcp(router.httpPort, 'the router', 'router.httpPort') : []),
    ...(router.enabled ? tcp(router.httpsPort, 'the router', 'router.httpsPort') : []),
  ];
  const own = await ownProcesses(context);
  return { wanted, listeners: await readListeners(machine, new Set(wanted.map(({ port }) => port)), own) };
}

const UDP = { protocol: 'udp' } as const;

/**
 * Processes of this root's components. They are recognized by their command line or, in a container, by their mounts.
 */
async function ownProcesses({ root, machine, status }: DoctorContext) {
  const known = await status().then(
    ({ pid, components }) => new Set([pid, ...components.map((each) => each.pid)]),
    () => new Set<number>(),
  );
  return async (pid: number, command: readonly string[]): Promise<boolean> => {
    if (known.has(pid)) return true;
    const [program = '', script = ''] = command;
    const isOurs = /(?:^|\/)hyperedge[^/]*$/.test(program) || /\/src\/main\.ts$/.test(script);
    if (!isOurs || root === '/') return isOurs;
    if (command.some((argument) => argument.includes(root))) return true;
    return (await textOf(join(machine, 'proc', String(pid), 'mountinfo'))).includes(` ${root}/`);
  };
}

export async function programFacts(): Promise<Facts['programs']> {
  const bundled = embeddedHelpers() !== undefined;
  return { bundled, missing: bundled ? [] : await missingPrograms() };
}

export async function processFacts({ status, installed, settings, nowMs }: DoctorContext): Promise<ProcessFacts> {
  const given = await settings();
  const required = [
    ...(given.roles.has('master') ? ['api', 'controllers'] : []),
    ...(ownsStore(given) ? ['etcd'] : []),
  ];
  const nothing = { pid: undefined, version: undefined, ready: undefined, notReady: undefined };
  const unknown = { ...nothing, expected: required, components: [], failures: [] };
  if (!(await installed())) return { ...unknown, problem: 'nothing is installed here' };
  try {
    const { pid, version, ready, notReady, components, failedRevisions, startedAt } = await status();
    return {
      pid,
      version,
      ready,
      notReady,
      problem: undefined,
      expected: nowMs - Date.parse(startedAt) < START_MS ? [] : required,
      failures: failedRevisions.map(({ operand, component, revision, running, error }) => ({
        operand,
        component,
        revision,
        running,
        error,
      })),
      components: components.map(({ name, state, restarts, startedAt }) => ({
        name,
        state,
        restarts,
        upMs: Number.isNaN(Date.parse(startedAt)) ? undefined : nowMs - Date.parse(startedAt),
      })),
    };
  } catch (error) {
    return { ...unknown, problem: messageOf(error) };
  }
}

export async function unitFacts({ root, machine, installed }: DoctorContext): Promise<Facts['unit']> {
  if (root !== '/' || machine !== '/') throw absentFact(`the installation below ${root} has no systemd unit`);
  if (!(await installed())) throw absentFact('nothing is installed here');
  if (!(await systemdRuns())) throw absentFact('systemd does not run');
  const names = ['LoadState', 'ActiveState', 'UnitFileState', 'Result', 'NRestarts', 'WatchdogUSec'];
  const { stdout } = await runProgram(
    'systemctl',
    ['show', SERVICE, ...names.flatMap((name) => ['-p', name])],
    PROGRAM_MS,
  );
  return unitOf(stdout, await lastError());
}

/** State of the host's systemd unit, from the output of `systemctl show`. */
export function unitOf(shown: string, last: string | undefined): Facts['unit'] {
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(shown)?.[1] ?? '';
  return {
    load: value('LoadState'),
    active: value('ActiveState'),
    enabled: value('UnitFileState'),
    result: value('Result'),
    restarts: Number(value('NRestarts')),
    watchdogMs: durationMs(value('WatchdogUSec')),
    lastError: last,
  };
}

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, min: 60_000, s: 1000, ms: 1, us: 0.001 };

/** Milliseconds of a systemd.time(7) duration, such as `1min 30s`. */
function durationMs(text: string): number {
  let sum = 0;
  for (const [, digits = '0', unit = 's'] of text.matchAll(/(\d+(?:\.\d+)?)(h|min|ms|us|s)\b/g))
    sum += Number(digits) * (UNIT_MS[unit] ?? 0);
  return sum;
}

export async function remainFacts({ settings, machine }: DoctorContext): Promise<Facts['leftovers']> {
  const { paths } = await settings();
  return readRemains(machine, {
    state: paths.containers,
    run: join(paths.run, 'containers'),
    volumes: paths.volumes,
    logs: paths.podLogs,
  });
}

export async function privateFileFacts({ settings }: DoctorContext): Promise<Facts['privateFiles']> {
  const given = await settings();
  try {
    await checkPrivateFiles(given);
    return { problem: undefined };
  } catch (error) {
    if (error instanceof CodedError && error.code === 'bad-config') return { problem: error.message };
    throw error;
  }
}
