/** Checks of the configuration, the process and the unit of this host, and of what pods have left behind. */
import type { Finding } from '../port.ts';
import { check, error, ok, orOk, restartCommand, rootFlag, shell, skipped, warning } from './check.ts';

const MANY_RESTARTS = 3;
/** A component that has run for longer has recovered, or its restarts were planned. */
const RECOVERED_MS = 3_600_000;

const configuration = check({
  id: 'bootstrap-file',
  title: 'the bootstrap file is valid',
  group: 'host',
  preflight: true,
  explanation: 'The bootstrap file and its drop-ins are read as at a start; the message names file, line and field.',
  needs: ['configuration'],
  run: ({ configuration: { file, problem } }) =>
    problem === undefined ? [ok(file)] : [error(problem, `\${EDITOR:-vi} ${shell(file)} && hyperedge config check`)],
});

const programs = check({
  id: 'programs',
  title: 'container runtime and network programs exist',
  group: 'host',
  preflight: true,
  explanation: 'The executable contains runc, conmon, nft and ip, or the host has them.',
  needs: ['programs'],
  run: ({ programs: { missing, bundled } }) => {
    if (bundled) return [ok('bundled with the executable')];
    if (missing.length === 0) return [ok('programs of this host')];
    return [error(`${missing.join(', ')} are missing`, 'apt-get install runc conmon nftables iproute2 socat')];
  },
});

const hostProcess = check({
  id: 'host-process',
  title: 'the host process runs',
  group: 'host',
  explanation: 'hyperedge run answers on its control socket.',
  needs: ['hostProcess', 'host'],
  run: ({ hostProcess: { pid, problem, version }, host }) => {
    if (!host.installed) return [skipped('nothing is installed here')];
    const start =
      host.root === '/' ? 'systemctl start hyperedge; journalctl -u hyperedge -n 50 --no-pager' : restartCommand(host);
    if (problem !== undefined) return [error(problem, start)];
    return [ok(`pid ${pid}, version ${version}`)];
  },
});

const controlPlane = check({
  id: 'control-plane',
  title: 'the components of the control plane run',
  group: 'host',
  explanation:
    'Every component of this host runs with its newest revision. One that has restarted repeatedly has run for an ' +
    'hour since.',
  needs: ['hostProcess', 'host'],
  run: ({ hostProcess: { expected, components, failures, problem }, host }) => {
    if (!host.installed) return [skipped('nothing is installed here')];
    if (problem !== undefined) return [skipped('the host process does not run')];
    const missing = expected.filter((name) => !components.some((each) => each.name === name));
    const failed = failures.map(({ operand, component, revision, running, error: reason }) =>
      warning(
        `${component}: revision ${revision} failed and revision ${running} runs: ${reason}`,
        `hyperedge revisions rollback ${operand} ${running}${rootFlag(host.root)}    # or correct the files of ` +
          `revision ${revision} and run: hyperedge master-restart ${component}`,
      ),
    );
    const states: Finding[] = components.flatMap(({ name, state, restarts, upMs }) => {
      const logs = `master-logs ${name} ${name}${rootFlag(host.root)} --tail 30`;
      if (state !== 'running') return [error(`${name} is ${state} after ${restarts} restarts`, logs)];
      if (restarts <= MANY_RESTARTS || upMs === undefined || upMs > RECOVERED_MS) return [];
      return [warning(`${name} has restarted ${restarts} times, the last time less than an hour ago`, logs)];
    });
    const absent = missing.map((name) => error(`${name} has no container`, restartCommand(host)));
    return orOk([...absent, ...failed, ...states], components.map(({ name }) => name).join(', '));
  },
});

const unit = check({
  id: 'systemd-unit',
  title: 'the systemd unit is enabled and active',
  group: 'host',
  explanation: 'hyperedge.service is installed and active, starts at boot, and has not failed repeatedly.',
  needs: ['unit', 'host'],
  run: ({ unit: { load, active, enabled, result, restarts, lastError } }) => {
    const last = lastError === undefined ? '' : `: ${lastError}`;
    const findings: Finding[] = [];
    if (load !== 'loaded') return [unloaded(load)];
    const startsFirst = active === 'activating' && result === 'success' && restarts === 0;
    if (startsFirst)
      findings.push(warning('hyperedge.service is still starting', 'journalctl -u hyperedge -n 50 --no-pager'));
    else if (active !== 'active')
      findings.push(
        error(
          `hyperedge.service is ${active} (${result})${last}`,
          'systemctl reset-failed hyperedge; systemctl start hyperedge',
        ),
      );
    else if (restarts > MANY_RESTARTS)
      findings.push(
        warning(`hyperedge.service was restarted ${restarts} times${last}`, 'journalctl -u hyperedge -p warning -n 50'),
      );
    if (enabled !== 'enabled' && enabled !== 'enabled-runtime')
      findings.push(
        warning(`hyperedge.service is ${enabled}: it does not start at boot`, 'systemctl enable hyperedge'),
      );
    return orOk(findings, `active, ${restarts} restarts`);
  },
});

/** Finding for a unit that `systemctl start` cannot start: its file is missing, masked or invalid. */
function unloaded(load: string): Finding {
  if (load === 'not-found') return error('hyperedge.service is not installed', 'hyperedge install');
  if (load === 'masked')
    return error(
      'hyperedge.service is masked: it cannot start',
      'systemctl unmask hyperedge && systemctl enable --now hyperedge',
    );
  return error(
    `hyperedge.service cannot be loaded (${load})`,
    'systemd-analyze verify hyperedge.service; hyperedge install    # writes the unit again',
  );
}

const watchdog = check({
  id: 'watchdog',
  title: 'systemd restarts a host process that hangs',
  group: 'host',
  explanation: 'The unit has WatchdogSec, and the watchdog has not ended the process.',
  needs: ['unit'],
  run: ({ unit: { watchdogMs, result, active } }) => {
    if (result === 'watchdog')
      return [
        warning('the watchdog has ended the host process', "journalctl -u hyperedge | grep -B 20 'Watchdog timeout'"),
      ];
    if (active === 'active' && watchdogMs === 0)
      return [
        warning(
          'hyperedge.service has no WatchdogSec',
          'rm -f /etc/systemd/system/hyperedge.service.d/*watchdog*.conf; systemctl daemon-reload; systemctl restart hyperedge',
        ),
      ];
    return [ok(watchdogMs === 0 ? 'the unit is not active' : `${watchdogMs / 1000} s`)];
  },
});

function parentsOf(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(2).map((_, index) => parts.slice(0, index + 2).join('/'));
}

const leftovers = check({
  id: 'leftover-mounts',
  title: 'no mounts of ended pods are left',
  group: 'host',
  explanation: 'Every mount below the directories of pods and containers belongs to a recorded container or pod.',
  needs: ['leftovers'],
  run: ({ leftovers: { mounts } }) => {
    // Mounts below another one are unmounted with it. To unmount them alone would propagate to the mounts of the host
    // that they show.
    const given = new Set(mounts);
    const outermost = mounts.filter((mount) => !parentsOf(mount).some((parent) => given.has(parent)));
    return orOk(
      outermost.map((mount) =>
        warning(
          `${mount} is mounted, but belongs to no pod`,
          `mount --make-rprivate ${shell(mount)} && umount -l ${shell(mount)}`,
        ),
      ),
      'none',
    );
  },
});

const leftoverNamespaces = check({
  id: 'leftover-namespaces',
  title: 'no network namespaces of ended pods are left',
  group: 'host',
  explanation: 'Every named network namespace of a pod belongs to a recorded sandbox.',
  needs: ['leftovers'],
  run: ({ leftovers: { namespaces } }) =>
    orOk(
      namespaces.map((path) =>
        warning(`network namespace ${path} belongs to no pod`, `umount ${shell(path)} && rm ${shell(path)}`),
      ),
      'none',
    ),
});

const privateFiles = check({
  id: 'private-files',
  title: 'keys and kubeconfigs are readable by root only',
  group: 'host',
  explanation: 'No other user of the machine can read or write a key, kubeconfig or keyring.',
  needs: ['privateFiles'],
  run: ({ privateFiles: { problem } }) => {
    if (problem === undefined) return [ok('mode 0600')];
    const fix = /chmod [^;,)]+/.exec(problem)?.[0] ?? 'chmod -R go= /etc/origin/master /etc/origin/node';
    return [error(problem, fix)];
  },
});

export const hostChecks = [
  configuration,
  programs,
  hostProcess,
  controlPlane,
  unit,
  watchdog,
  leftovers,
  leftoverNamespaces,
  privateFiles,
];
