/**
 * `hyperedge install`: installs the executable, its links, units and helper programs, writes the bootstrap file from
 * flags, starts the service and waits until the node is Ready. A second run changes nothing, or upgrades.
 */

import { existsSync } from 'node:fs';
import { readFile, rm, rmdir } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createProgress, type Progress } from '../../base/command-line/progress.ts';
import { CodedError, ignore } from '../../base/errors.ts';
import { countText } from '../../base/text/count-text.ts';
import { MACHINE_NAMESPACE } from '../../openshift/machines/kinds/machine-types.ts';
import { masterFiles } from '../../pki/index.ts';
import { canonicalRoot } from '../config/paths.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { callControl, type HostStatus } from '../control/control.ts';
import { layoutLine } from '../control/store-layout.ts';
import { preflight } from '../doctor/preflight.ts';
import { discoverPinned } from '../join/discovery.ts';
import { offerKeys } from '../join/offer-keys.ts';
import { checkPort } from '../network/ports.ts';
import { missingPrograms } from '../node/host-programs.ts';
import { packaged } from '../process/assets.ts';
import { openHelpers } from '../process/helper-programs.ts';
import { applyServed } from './boot-machine-config.ts';
import { type BootstrapFlags, bootstrapPath, bootstrapText, checkCluster, writeBootstrap } from './bootstrap-flags.ts';
import { placeFiles, SERVICE } from './layout.ts';
import { placeMountDropIns } from './mount-drop-in.ts';
import { servedConfig } from './served-config.ts';
import { lastError, serviceState, systemctl, systemdRuns } from './service.ts';

export interface InstallOptions extends BootstrapFlags {
  readonly root: string | undefined;
  /**
   * Source of the host's first config: a file with the response of a machine config server, or the URL of such a
   * server.
   */
  readonly fromMcs: string | undefined;
  /** Called after the checks of the host, to write more files. If it fails, the bootstrap file is restored. */
  readonly payload?: (settings: Settings) => Promise<void>;
  /** If false, the files are installed but the service is not started. */
  readonly start: boolean;
  /** Checks of `hyperedge doctor --preflight` whose errors do not stop the installation. */
  readonly ignore: readonly string[];
  readonly timeoutMs: number;
  readonly write: (text: string) => void;
  /** Whether steps and notes are omitted from the output. */
  readonly quiet: boolean;
}

const POLL_MS = 250;
/** Number of automatic restarts after which an error counts as permanent. */
const FATAL_RESTARTS = 3;

/** Installs or upgrades the host. Resolves with the exit code. Throws CodedErrors of one line with the fix. */
export async function install(options: InstallOptions): Promise<number> {
  const root = await canonicalRoot(options.root);
  const start = options.start && root === '/';
  await checkMachine(start);
  const path = bootstrapPath(root);
  const text = await bootstrapText(path, options);
  await checkCluster(root, options);
  if (options.address !== undefined) checkAddress(options.address);
  const before = start ? await fetchStatus(root) : undefined;

  const progress = createProgress({
    write: options.write,
    terminal: process.stdout.isTTY === true,
    nowMs: () => performance.now(),
    quiet: options.quiet,
  });
  const previous = await readFile(path, 'utf8').catch(() => undefined);
  const configured = await writeBootstrap(path, text);
  const ready = async (): ReturnType<typeof prepare> => {
    const found = await prepare(path, root, start);
    if (start) await preflight({ root, ignore: options.ignore, note: progress.note });
    await options.payload?.(found.settings);
    return found;
  };
  const prepared = await ready().catch(async (error: unknown) => {
    // After a failed check, the bootstrap file is restored or removed.
    if (configured && previous === undefined) {
      await rm(path, { force: true });
      await rmdir(dirname(path)).catch(ignore('other configuration files are kept'));
    } else await writeBootstrap(path, previous);
    throw error;
  });
  const { settings, helpers } = prepared;
  progress.step(helpers === undefined ? 'programs of this host are used' : `bundled programs are in ${helpers}`);
  if (options.fromMcs !== undefined) {
    const name = await applyServed(settings, await servedConfig(options.fromMcs, options.join));
    progress.step(`files of ${name} are in place`);
  }
  const { changed, foreign, executable } = await placeFiles(root, process.execPath);
  for (const each of foreign) progress.note(`${each} is of other software and is kept`);
  progress.step(
    changed.length === 0 ? 'all files are in place' : `wrote ${countText(changed.length, 'file')}, ${executable} first`,
  );
  const ordered = await placeMountDropIns(settings);
  if (!start) {
    options.write(`installed below ${root}; nothing is started\n`);
    return 0;
  }
  const upgraded = configured || changed.length > 0;
  if (upgraded || ordered) await systemctl('daemon-reload');
  const running = (await serviceState()).active === 'active';
  if (!running || upgraded) {
    await systemctl('reset-failed', SERVICE).catch(ignore('the unit may not have failed'));
    await systemctl('--no-block', running ? 'restart' : 'start', SERVICE);
    progress.step(`${SERVICE} ${running ? 'restarts with the new files; pods keep running' : 'starts'}`);
  }
  if (options.offer !== undefined && !settings.joined) {
    options.write(await offered(settings, options.offer));
    return 0;
  }
  const status = await waitUntilReady(root, running && upgraded ? before?.pid : undefined, options.timeoutMs, progress);
  const { router } = masterFiles(settings.root);
  if (existsSync(router.cert)) progress.step(`default certificate of routes is in ${router.cert}`);
  progress.step(`node ${status.node} is Ready`);
  options.write(next(settings, status));
  return 0;
}

/**
 * Prepares a host that waits until a Machine claims it. Throws CodedErrors if `server` does not belong to the cluster
 * that `caHash` identifies.
 */
async function offered(settings: Settings, { server, caHash }: InstallOptions['offer'] & object): Promise<string> {
  await discoverPinned(server, caHash);
  const { fingerprint } = await offerKeys(settings.root);
  const { nodeName } = settings;
  return (
    `This host offers itself as ${nodeName}, fingerprint ${fingerprint}. What is next, on a master:\n` +
    `  kubectl -n ${MACHINE_NAMESPACE} get baremetalhost ${nodeName} -o yaml    # compare the fingerprint\n` +
    `  kubectl -n ${MACHINE_NAMESPACE} patch baremetalhost ${nodeName} --type merge -p '{"spec":{"online":true}}'\n` +
    '  then make or scale a Machine or MachineSet\n'
  );
}

/** Reads the settings, checks them against this host, and unpacks the helper programs. */
async function prepare(
  path: string,
  root: string,
  start: boolean,
): Promise<{ readonly settings: Settings; readonly helpers: string | undefined }> {
  const settings = await loadSettings({ root });
  if (!settings.roles.has('node')) {
    throw new CodedError(
      'bad-config',
      `${path}: roles: a host without the node role runs no pods; add node, or start hyperedge etcd by a unit of your own`,
    );
  }
  const helpers = settings.hostTools ? undefined : await openHelpers();
  const missing = helpers === undefined ? await missingPrograms() : [];
  if (missing.length > 0) {
    const why = settings.hostTools ? 'hostTools is set' : 'this executable contains no programs';
    throw new CodedError(
      'missing-program',
      `this host lacks ${missing.join(', ')} and ${why}; run apt-get install runc conmon nftables iproute2 socat`,
    );
  }
  // Ports are checked only before the first start. Later, components of this host may use their ports although the host
  // process is stopped, and only `hyperedge run` can recognize them.
  if (start && !existsSync(settings.paths.nodeConfig)) await checkOwnPorts(settings);
  return { settings, helpers };
}

async function checkMachine(start: boolean): Promise<void> {
  if (!packaged) throw new CodedError('from-source', 'install: this is a start from source; run npm run build first');
  if (process.geteuid?.() !== 0) throw new CodedError('not-root', 'install: needs root; run it with sudo');
  if (start && !(await systemdRuns())) {
    throw new CodedError(
      'no-systemd',
      'install: systemd does not run on this host; start hyperedge run from its own supervisor, or give --no-start',
    );
  }
}

function checkAddress(address: string): void {
  const own = Object.values(networkInterfaces()).flatMap((each) => each?.filter(({ internal }) => !internal) ?? []);
  if (own.some((each) => each.address === address)) return;
  const known = own.map((each) => each.address).join(', ');
  throw new CodedError(
    'bad-flag',
    `--address: no link of this host has ${address}; give one of ${known === '' ? '(none)' : known}`,
  );
}

async function checkOwnPorts({ ports, roles, storage, nodeIp }: Settings): Promise<void> {
  const any = nodeIp.includes(':') ? '::' : '0.0.0.0';
  const wanted = [
    { address: any, port: ports.kubelet, field: 'ports.kubelet', what: 'the kubelet', needed: true },
    { address: any, port: ports.api, field: 'ports.api', what: 'the API server', needed: roles.has('master') },
    {
      address: '127.0.0.1',
      port: ports.etcd,
      field: 'ports.etcd',
      what: 'etcd',
      needed: roles.has('etcd') && storage === undefined,
    },
  ];
  for (const each of wanted) if (each.needed) await checkPort(each);
}

const fetchStatus = (root: string): Promise<HostStatus | undefined> =>
  callControl<HostStatus>(`${root === '/' ? '' : root}/run/hyperedge/control.sock`, 'GET', '/status').catch(
    () => undefined,
  );

/**
 * Resolves with the status when the node is Ready. Throws CodedError 'not-ready' with the last error of the host
 * process, if there is one.
 */
async function waitUntilReady(
  root: string,
  replacedPid: number | undefined,
  timeoutMs: number,
  progress: Progress,
): Promise<HostStatus> {
  const began = performance.now();
  const { restarts: first } = await serviceState();
  let reported: string | undefined;
  for (;;) {
    const status = await fetchStatus(root);
    if (status?.ready === true && status.pid !== replacedPid) return status;
    const { restarts } = await serviceState();
    const error = restarts > first ? await lastError() : undefined;
    if (error !== undefined && error !== reported) {
      reported = error;
      progress.note(error);
    }
    if (error !== undefined && restarts - first >= FATAL_RESTARTS) {
      throw new CodedError('not-ready', `the host process does not start: ${error}; then run hyperedge install again`);
    }
    if (performance.now() - began > timeoutMs) {
      const seconds = Math.round(timeoutMs / 1000);
      const why = reported ?? 'see journalctl -u hyperedge';
      throw new CodedError('not-ready', `the node is not Ready after ${seconds} s: ${why}; the service keeps trying`);
    }
    await sleep(POLL_MS);
  }
}

function next(settings: Settings, status: HostStatus): string {
  const lines = settings.roles.has('master')
    ? [
        `  export KUBECONFIG=${status.kubeconfig}`,
        '  kubectl get nodes,pods -A',
        '  hyperedge status',
        '  hyperedge token create --roles node      # prints the command that adds a host',
      ]
    : ['  hyperedge status', '  journalctl -u hyperedge'];
  const layout = status.store === undefined ? '' : `${layoutLine(status.store)}\n`;
  return `${layout}What is next:\n${lines.join('\n')}\n`;
}
