/** Checks of the API server, the store and the nodes. */
import { countText } from '../../base/text/count-text.ts';
import { kubeletSkew } from '../../base/versions/version-skew.ts';
import type { Finding } from '../port.ts';
import { bytesText, check, error, ok, orOk, percent, rootFlag, shell, warning } from './check.ts';

const SLOW_API_MS = 1000;
/** Number of log entries by which a member may be behind the most advanced member. */
const LAG_ENTRIES = 1000;
const QUOTA_SHARE = 0.8;
const DAY_MS = 24 * 3_600_000;

const api = check({
  id: 'api',
  title: 'the API server is ready',
  group: 'cluster',
  explanation: 'The API server answers /readyz within a second.',
  needs: ['api', 'host'],
  run: ({ api: { server, problems, latencyMs, version }, host }) => {
    const logs = `master-logs api api${rootFlag(host.root)} --tail 30; hyperedge status${rootFlag(host.root)}`;
    if (problems.length > 0) return problems.map((problem) => error(`${server}: ${problem}`, logs));
    const evidence = `${server}, ${version}, ${Math.round(latencyMs)} ms`;
    return [
      latencyMs > SLOW_API_MS
        ? warning(`${evidence}: slow`, 'hyperedge doctor --check fsync --check memory')
        : ok(evidence),
    ];
  },
});

const kubelet = check({
  id: 'kubelet',
  title: 'the kubelet of this host is ready',
  group: 'cluster',
  explanation: 'The Node of this host is Ready and under no pressure of disk, memory or processes.',
  needs: ['nodes', 'host'],
  run: ({ nodes, host }) => {
    const name = shell(host.nodeName);
    const own = nodes.find((node) => node.name === host.nodeName);
    if (own === undefined)
      return [error(`node ${host.nodeName} is not registered`, `hyperedge status${rootFlag(host.root)}`)];
    const findings: Finding[] = own.pressures.map((pressure) =>
      warning(
        `${host.nodeName}: ${pressure}`,
        `kubectl describe node ${name}; hyperedge doctor --check disk-space --check memory`,
      ),
    );
    if (!own.ready)
      findings.push(error(`node ${host.nodeName} is not Ready: ${own.reason}`, `kubectl describe node ${name}`));
    return orOk(findings, `${host.nodeName} is Ready`);
  },
});

const nodes = check({
  id: 'nodes',
  title: 'all nodes are Ready',
  group: 'cluster',
  explanation: 'Every registered node reports that it is Ready.',
  needs: ['nodes'],
  run: ({ nodes: all }) =>
    orOk(
      all
        .filter(({ ready }) => !ready)
        .map(({ name, reason }) =>
          warning(`node ${name} is not Ready: ${reason}`, `kubectl describe node ${shell(name)}`),
        ),
      countText(all.length, 'node'),
    ),
});

const storeQuorum = check({
  id: 'store-quorum',
  title: 'the store has a quorum',
  group: 'cluster',
  explanation: 'A majority of the members answers. Without it, nothing can be written.',
  needs: ['store', 'host'],
  run: ({ store: { quorum, members }, host }) => {
    const down = members
      .filter(({ state }) => state !== 'ok')
      .map(({ name, errors }) => `${name} ${errors[0] ?? ''}`.trim());
    const evidence = `${members.length - down.length} of ${members.length} members answer`;
    if (!quorum)
      return [
        error(
          `${evidence}; no quorum; not reachable: ${down.join(', ')}`,
          'start hyperedge on the other members; if they are lost for good: ' +
            `hyperedge members recover${rootFlag(host.root)}`,
        ),
      ];
    if (down.length > 0)
      return [warning(`${evidence}; not reachable: ${down.join(', ')}`, `hyperedge members${rootFlag(host.root)}`)];
    return [ok(evidence)];
  },
});

const storeLag = check({
  id: 'store-lag',
  title: 'the members of the store are up to date',
  group: 'cluster',
  explanation: `No member is more than ${LAG_ENTRIES} log entries behind.`,
  needs: ['store'],
  run: ({ store: { members } }) =>
    orOk(
      members.flatMap(({ name, lag = 0 }) =>
        lag <= LAG_ENTRIES
          ? []
          : [
              warning(
                `${name} is ${countText(lag, 'entry', 'entries')} behind`,
                `hyperedge doctor --check fsync    # on ${shell(name)}; then: hyperedge members`,
              ),
            ],
      ),
      `at most ${Math.max(0, ...members.map(({ lag = 0 }) => lag))} entries behind`,
    ),
});

const storeAlarms = check({
  id: 'store-alarms',
  title: 'the store has no alarm',
  group: 'cluster',
  explanation: 'No member reports NOSPACE, CORRUPT or another error.',
  needs: ['store'],
  run: ({ store: { members } }) =>
    orOk(
      members
        .filter(({ state }) => state === 'ok')
        .flatMap(({ name, errors }) =>
          errors.map((alarm) =>
            error(
              `${name}: ${alarm}`,
              /NOSPACE/.test(alarm)
                ? 'hyperedge members compact    # or raise quota-backend-bytes'
                : 'hyperedge snapshot save && hyperedge members',
            ),
          ),
        ),
      'none',
    ),
});

const storeSize = check({
  id: 'store-size',
  title: 'the store is smaller than its quota',
  group: 'cluster',
  explanation: 'The database of each member uses less than 80 % of quota-backend-bytes.',
  needs: ['store'],
  run: ({ store: { members, quotaBytes } }) => {
    const findings = members.flatMap(({ name, bytes = 0 }) => {
      const share = bytes / quotaBytes;
      if (quotaBytes <= 0 || share < QUOTA_SHARE) return [];
      return [
        warning(
          `${name}: ${bytesText(bytes)} of ${bytesText(quotaBytes)} (${percent(share)})`,
          'hyperedge members compact    # or raise quota-backend-bytes in /etc/etcd/etcd.conf.yaml',
        ),
      ];
    });
    const most = Math.max(0, ...members.map(({ bytes = 0 }) => bytes));
    return orOk(findings, `${bytesText(most)} of ${bytesText(quotaBytes)}`);
  },
});

const deploy = check({
  id: 'deploy-directory',
  title: 'the manifests of the deploy directory are applied',
  group: 'cluster',
  explanation: 'Every file can be parsed, and the API server has accepted its objects.',
  needs: ['deploy'],
  run: ({ deploy: { directory, problems, files } }) =>
    orOk(
      problems.map(({ file, problem }) => {
        const skip = shell(`${directory}/${file}.skip`);
        const rest = `pauses the file; correct it, then remove ${shell(`${file}.skip`)}`;
        return error(`${file}: ${problem}`, `touch ${skip}    # ${rest}`);
      }),
      `${countText(files, 'file')} in ${directory}`,
    ),
});

const staticPods = check({
  id: 'static-pods',
  title: 'the kubelet accepts the manifests of static pods',
  group: 'cluster',
  explanation: 'Every file in the directory of static pods is a valid pod without references to API objects.',
  needs: ['staticPods'],
  run: ({ staticPods: { directory, problems, files } }) =>
    orOk(
      problems.map(({ file, problem }) => {
        const [from, to] = [shell(`${directory}/${file}`), shell(`${directory}/.${file}`)];
        return error(problem, `mv ${from} ${to}    # the kubelet ignores it; correct it, then move it back`);
      }),
      `${countText(files, 'file')} in ${directory}`,
    ),
});

const snapshots = check({
  id: 'snapshots',
  title: 'a snapshot of the store is younger than a day',
  group: 'cluster',
  explanation: 'The newest readable file of the snapshot directory is at most a day old, and no file is damaged.',
  needs: ['snapshots', 'clock', 'host'],
  run: ({ snapshots: { directory, newestMs, damaged }, clock: { nowMs }, host }) => {
    const root = rootFlag(host.root);
    const save = `hyperedge snapshot save${root}; hyperedge snapshot schedule --on${root}`;
    const findings = damaged.map(({ file, problem }) => warning(problem, `rm ${shell(file)}; ${save}`));
    if (newestMs === undefined) findings.push(warning(`${directory} has no snapshot`, save));
    else if (nowMs - newestMs > DAY_MS)
      findings.push(warning(`the newest snapshot is ${Math.floor((nowMs - newestMs) / 3_600_000)} hours old`, save));
    return orOk(findings, directory);
  },
});

const versionSkew = check({
  id: 'version-skew',
  title: 'the versions of nodes and API server are compatible',
  group: 'cluster',
  explanation: 'No kubelet is newer than the API server or more than three minor versions older.',
  needs: ['nodes', 'api'],
  run: ({ nodes: all, api: { version } }) =>
    orOk(
      all.flatMap(({ name, kubeletVersion }) => {
        const problem = kubeletSkew(kubeletVersion, version);
        return problem === undefined
          ? []
          : [
              error(
                `node ${name}: ${problem}`,
                `hyperedge install    # with the newer executable, on ${shell(name)} or the masters`,
              ),
            ];
      }),
      version,
    ),
});

const update = check({
  id: 'update',
  title: 'no update is pending or has failed',
  group: 'cluster',
  explanation: 'The cluster has the newest imported release, and the last update of this host is complete.',
  needs: ['update', 'host'],
  run: ({ update: { current, available, desired, failing, unfinished, damaged, former }, host }) => {
    const findings: Finding[] = [];
    const fix = 'kubectl get clusterversion version -o yaml; kubectl get clusteroperators';
    const isUpdating = desired !== '' && desired !== current;
    if (failing !== undefined)
      findings.push(error(isUpdating ? `the update to ${desired} fails: ${failing}` : failing, fix));
    else if (isUpdating) findings.push(warning(`the update to ${desired} is not complete`, fix));
    if (damaged !== undefined) findings.push(error(damaged, 'ls /usr/local/bin/hyperedge-*'));
    if (unfinished !== undefined) findings.push(warning(unfinished, 'journalctl -u hyperedge-update-guard -n 50'));
    if (former !== undefined) {
      const cause = `${former.cause}; this may be a defect of ${current}, which replaced ${former.version}`;
      findings.push(warning(cause, `hyperedge bundle rollback${rootFlag(host.root)}`));
    }
    const [next] = available;
    if (next !== undefined)
      findings.push(warning(`release ${next} is available`, `oc adm upgrade --to=${shell(next)}`));
    return orOk(findings, current);
  },
});

export const clusterChecks = [
  api,
  kubelet,
  nodes,
  storeQuorum,
  storeLag,
  storeAlarms,
  storeSize,
  staticPods,
  deploy,
  snapshots,
  versionSkew,
  update,
];
