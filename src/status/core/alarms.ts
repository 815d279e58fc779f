/** Alarms: facts that require an administrator, each with a command that helps. */
import { humanDuration } from '../../api/printing/duration.ts';
import type { Gathered, UpdateFacts } from '../../doctor/port.ts';
import type { About, Alarm, GatheredStatus, SourceName, StatusFacts } from '../port.ts';

const DAY_MS = 24 * 3_600_000;
const EXPIRES_SOON_MS = 14 * DAY_MS;
/** Number of log entries by which a member may be behind the most advanced member. */
const LAG_ENTRIES = 1000;
/**
 * Number of scheduled intervals after which a missing snapshot is an alarm. The last interval may not be complete, and
 * saving a snapshot takes time.
 */
const LATE_INTERVALS = 2;

export const knownValue = <T>(fact: Gathered<T>): T | undefined => (fact.state === 'known' ? fact.value : undefined);

/** Quotes text for a command line. */
const shell = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

type Rule = (facts: GatheredStatus, about: About, rootFlag: string) => readonly Alarm[];

const error = (subject: string, message: string, next: string): Alarm => ({
  severity: 'error',
  subject,
  message,
  next,
});
const warning = (subject: string, message: string, next: string): Alarm => ({
  severity: 'warning',
  subject,
  message,
  next,
});

/** Rule for one source of facts. It runs only if the facts of the source are known. */
const of =
  <N extends SourceName>(name: N, rule: (fact: StatusFacts[N], about: About, rootFlag: string) => Alarm[]): Rule =>
  (facts, about, rootFlag) => {
    const fact: Gathered<StatusFacts[N]> = facts[name];
    return fact.state === 'known' ? rule(fact.value, about, rootFlag) : [];
  };

/** Command that makes the host process respond again. Pods keep running while it restarts. */
function wake({ root, noAnswer }: About, rootFlag: string): string {
  const log = 'journalctl -u hyperedge -n 50';
  switch (noAnswer?.why) {
    case 'silent':
      return root === '/'
        ? `${log}; if it does not start within a minute: systemctl restart hyperedge`
        : `kill ${noAnswer.pid}; hyperedge run${rootFlag}`;
    case 'no-unit':
      return noAnswer.load === 'masked'
        ? 'systemctl unmask hyperedge; systemctl start hyperedge'
        : 'hyperedge install    # writes the unit again';
    case 'unit-failed':
      return `${log}; then systemctl reset-failed hyperedge; systemctl start hyperedge`;
    default:
      return root === '/' ? `systemctl start hyperedge; ${log}` : `hyperedge run${rootFlag}`;
  }
}

const processRule: Rule = ({ process }, about, rootFlag) => {
  if (process.state !== 'known') return about.installed ? [error('host', process.reason, wake(about, rootFlag))] : [];
  const { ready, notReady = '', components, kubernetes } = process.value;
  const stopped = components.filter(({ state }) => state !== 'running');
  return [
    ...stopped.map(({ name, state }) =>
      error(name, `the component is ${state}`, `master-logs ${shell(name)} ${shell(name)}${rootFlag} --tail 30`),
    ),
    ...(ready || stopped.length > 0
      ? []
      : [error('host', `this host is not Ready: ${notReady}`, `hyperedge doctor${rootFlag}`)]),
    ...kubernetes.skew.map((skew) => warning('versions', skew, `hyperedge doctor --check version-skew${rootFlag}`)),
  ];
};

const revisionRule = of('process', ({ failures }, _about, rootFlag) =>
  failures.map((failure) => error('control plane', failure, `hyperedge revisions list${rootFlag}`)),
);

const pendingRule = of('process', ({ pendingRestart }, { root }, rootFlag) => {
  if (pendingRestart === undefined) return [];
  const { fields, problem } = pendingRestart;
  const check = `hyperedge config check${rootFlag}`;
  if (problem !== undefined)
    return [warning('bootstrap file', `the next start of the host process will fail: ${problem}`, check)];
  const restart = root === '/' ? 'systemctl restart hyperedge' : `a restart of hyperedge run${rootFlag}`;
  return [
    warning(
      'bootstrap file',
      `a restart is pending, because these fields changed: ${fields.join(', ')}`,
      `${check} && ${restart}`,
    ),
  ];
});

const nodeRule = of('nodes', (nodes, { nodeName }) =>
  nodes.flatMap(({ name, ready, reason, pressures }) => {
    const next = `kubectl describe node ${shell(name)}`;
    const notReady = ready || name === nodeName ? [] : [warning(`node ${name}`, `not Ready: ${reason}`, next)];
    return [...notReady, ...pressures.map((pressure) => warning(`node ${name}`, pressure, next))];
  }),
);

const ringRule: Rule = ({ ring, nodes }, _about, rootFlag) => {
  const reported = new Set((knownValue(nodes) ?? []).filter(({ ready }) => !ready).map(({ name }) => name));
  return (knownValue(ring) ?? [])
    .filter(({ name, state }) => (state === 'dead' || state === 'suspect') && !reported.has(name))
    .map(({ name, state, forMs }) =>
      warning(
        `host ${name}`,
        `${state} in the gossip ring for ${humanDuration(forMs)}`,
        `hyperedge gossip members${rootFlag}`,
      ),
    );
};

const storeRule = of('store', ({ quorum, members }, _about, rootFlag) => {
  const alarms: Alarm[] = [];
  const list = `hyperedge members${rootFlag}`;
  if (!quorum)
    alarms.push(
      error(
        'store',
        'no majority of the members answers, so nothing can be written',
        `start hyperedge on the other members; if they are lost for good: hyperedge members recover --dry-run${rootFlag}`,
      ),
    );
  for (const { name, id, state, lag = 0, errors } of members) {
    const subject = `store member ${name === '' ? id : name}`;
    if (state === 'ok') {
      for (const each of errors)
        alarms.push(error(subject, each, `hyperedge doctor --check store-alarms --check store-size${rootFlag}`));
      if (lag > LAG_ENTRIES) alarms.push(warning(subject, `${lag} entries behind`, list));
    } else alarms.push(warning(subject, state === 'unreachable' ? 'does not answer' : 'has not started yet', list));
  }
  return alarms;
});

const certificateRule = of('certificates', (certificates, { nowMs }, rootFlag) =>
  certificates.flatMap(({ file, notAfterMs, problem }) => {
    const next = `hyperedge doctor --check certificates${rootFlag}`;
    if (problem !== undefined) return [warning(file, problem, next)];
    const leftMs = notAfterMs - nowMs;
    if (leftMs <= 0) return [error(file, `expired ${humanDuration(-leftMs)} ago`, next)];
    return leftMs < EXPIRES_SOON_MS ? [warning(file, `expires in ${humanDuration(leftMs)}`, next)] : [];
  }),
);

const snapshotRule = of('snapshots', ({ directory, newest, everyMs, problems }, { nowMs }, rootFlag) => {
  const save = `hyperedge snapshot save${rootFlag}`;
  const alarms = problems.map((problem) => warning('snapshots', problem, `hyperedge snapshot list${rootFlag}`));
  if (newest === undefined) alarms.push(warning('snapshots', `${directory} has no snapshot`, save));
  else if (nowMs - newest.takenMs > LATE_INTERVALS * (everyMs ?? DAY_MS))
    alarms.push(
      warning(
        'snapshots',
        `the newest snapshot is ${humanDuration(nowMs - newest.takenMs)} old`,
        `${save}; hyperedge snapshot schedule${rootFlag}`,
      ),
    );
  return alarms;
});

const updateRule = of('update', ({ current, desired, failing, unfinished, former }, _, rootFlag) => [
  ...(failing === undefined
    ? []
    : [warning('update', `the update to ${desired} fails: ${failing}`, 'kubectl get clusterversion version -o yaml')]),
  ...(unfinished === undefined ? [] : [warning('update', unfinished, 'journalctl -u hyperedge-update-guard -n 50')]),
  ...(former === undefined
    ? []
    : [warning('update', formerText(current, former), `hyperedge bundle rollback${rootFlag}`)]),
]);

const formerText = (current: string, { version, cause }: NonNullable<UpdateFacts['former']>): string =>
  `${cause}; this may be a defect of ${current}, which replaced ${version}`;

const poolRule = of('pools', (pools) =>
  pools.flatMap(({ name, degraded }) =>
    degraded === undefined
      ? []
      : [warning(`pool ${name}`, `degraded: ${degraded}`, `kubectl describe machineconfigpool ${shell(name)}`)],
  ),
);

const operatorRule = of('operators', (operators) =>
  operators.map(({ name, state, message }) =>
    warning(`operator ${name}`, `${state}: ${message}`, `kubectl describe clusteroperator ${shell(name)}`),
  ),
);

const RULES: readonly Rule[] = [
  ...[processRule, revisionRule, pendingRule, storeRule, nodeRule, ringRule, certificateRule, snapshotRule, updateRule],
  ...[poolRule, operatorRule],
];

/** All alarms: first errors, then warnings, each in the order of the report. */
export function alarmsOf(facts: GatheredStatus, about: About): Alarm[] {
  const rootFlag = about.root === '/' ? '' : ` --root ${shell(about.root)}`;
  const alarms = RULES.flatMap((rule) => rule(facts, about, rootFlag));
  return alarms.toSorted((left, right) => Number(right.severity === 'error') - Number(left.severity === 'error'));
}
