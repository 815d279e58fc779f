import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exitCodeOf, noAnswerOf, noAnswerText, reportOf, textOf } from '../../../src/status/core/index.ts';
import type { GatheredStatus } from '../../../src/status/port.ts';
import { ABOUT, absent, failed, gathered, HEALTHY, NOW_MS } from '../facts.ts';

const PLAIN = { wide: false, colours: false };

function show(facts: GatheredStatus, options = PLAIN, about = ABOUT): string {
  const { process } = facts;
  const host = process.state === 'known' ? { process: process.value } : { reason: process.reason };
  return textOf(reportOf(facts, about), host, about, options);
}

test('the status report of a healthy cluster suggests no next step', () => {
  assert.equal(
    show(gathered()),
    `node pi-1 (10.0.0.1): Ready
hyperedge 0.1.0, pid 700, since 2026-11-01T00:00:00.000Z, cgroup driver systemd
kubernetes v1.36.0, API server v1.36.0
kubeconfig /etc/origin/master/admin.kubeconfig
store: 2 voters; survives the loss of no member; join another master to survive the loss of one

COMPONENT   STATE     RESTARTS   STARTED
api         running   0          2026-11-01T00:00:09.000Z

NODE   HEALTH   ROLES           VERSION   RELEASE   LAST CONTACT   FROM
pi-1   Ready    master,worker   v1.36.0   0.1.0     0s ago         api
pi-2   Ready    master,worker   v1.36.0   0.1.0     0s ago         api
pi-3   Ready    worker          v1.36.0   0.1.0     0s ago         api

STORE MEMBER   ROLE     STATE   LAG   FSYNC   SIZE
pi-1           leader   ok      0     2.5ms   4.8MiB
pi-2           voter    ok      3     2.5ms   4.8MiB

quorum         yes
certificates   next expires in 90d (2027-01-30): /etc/origin/master/admin.crt
last snapshot  120m ago, revision 812, 4.8MiB; one every 24h
release        0.1.0
pools          worker 3 of 3 updated
`,
  );
  const report = reportOf(gathered(), ABOUT);
  assert.deepEqual([report.result, report.alarms, report.unknown, report.next], ['ok', [], [], []]);
  assert.equal(exitCodeOf(report), 0);
});

test('the status report colours only states, and aligns columns the same with and without colours', () => {
  const coloured = show(gathered(), { wide: true, colours: true });
  const start = String.fromCharCode(27);
  const sequence = new RegExp(`${start}\\[\\d+m`, 'g');
  assert.equal(coloured.replaceAll(sequence, ''), show(gathered(), { wide: true, colours: false }));
  const painted = coloured.split(sequence).filter((_, at) => at % 2 === 1);
  assert.deepEqual(new Set(painted), new Set(['Ready', 'running', 'ok']));
  assert.match(coloured, /STARTED +PID\n/);
});

test('shows the last contact to gossip members while the API server is unavailable', () => {
  const ring = HEALTHY.ring.map((each) =>
    each.name === 'pi-2' ? { ...each, state: 'dead' as const, forMs: 600_000 } : each,
  );
  const reason = 'connect ECONNREFUSED 10.0.0.1:8443';
  const notReady = `the API server is not ready: ${reason}`;
  const facts = gathered(
    { ring, process: { ...HEALTHY.process, ready: false, notReady } },
    { nodes: failed(reason), pools: failed(reason), operators: failed(reason) },
  );
  const report = reportOf(facts, ABOUT);
  const two = report.nodes.find(({ name }) => name === 'pi-2');
  assert.deepEqual([two?.health, two?.lastContactMs, two?.from], ['dead', 600_000, 'gossip']);
  assert.deepEqual(report.unknown, [{ what: 'nodes of the API server, pools, cluster operators', why: reason }]);
  assert.equal(exitCodeOf(report), 1);
  const text = show(facts);
  assert.match(text, /^node pi-1 \(10\.0\.0\.1\): NotReady: the API server is not ready: connect/);
  assert.match(text, /^pi-2 +dead +master,etcd,node +- +0\.1\.0 +10m ago +gossip$/m);
  assert.match(text, /^unknown nodes of the API server, pools, cluster operators: connect ECONNREFUSED/m);
  assert.match(text, /^error +host: this host is not Ready: .*\nwarning host pi-2: dead in the gossip ring for 10m$/m);
  assert.match(text, /^Next:\n {2}hyperedge doctor\n {2}hyperedge gossip members\n$/m);
});

test('shows the reason and the start command if the host process does not run', () => {
  const reason = 'the host process does not run here';
  const facts = gathered({}, { process: failed(reason), ring: absent('this host is not a member of a gossip ring') });
  const text = show(facts);
  assert.match(text, /^node pi-1 \(10\.0\.0\.1\): unknown: the host process does not run here\n/);
  assert.match(text, /^ {2}systemctl start hyperedge; journalctl -u hyperedge -n 50$/m);
  assert.doesNotMatch(text, /gossip ring/, 'a source that does not exist here is not unknown');
  assert.match(show(facts, PLAIN, { ...ABOUT, root: '/srv/a b' }), /^ {2}hyperedge run --root '\/srv\/a b'$/m);
});

test('distinguishes a host process that hangs, a failed unit and a process that does not run', () => {
  const socket = '/run/hyperedge/control.sock';
  const unit = {
    load: 'loaded',
    active: 'failed',
    enabled: 'enabled',
    result: 'exit-code',
    restarts: 5,
    watchdogMs: 0,
    lastError: 'no disk',
  };
  const texts = [noAnswerOf(700, unit), noAnswerOf(undefined, unit), noAnswerOf(undefined, undefined)].map(
    (noAnswer) => {
      const reason = noAnswerText(noAnswer, socket) ?? 'the host process does not run here';
      return show(gathered({}, { process: failed(reason) }), PLAIN, { ...ABOUT, noAnswer });
    },
  );
  const [silent = '', broken = '', stopped = ''] = texts;
  assert.match(silent, /the host process \(pid 700\) runs but does not answer at \/run\/hyperedge\/control\.sock/);
  assert.match(
    silent,
    /^ {2}journalctl -u hyperedge -n 50; if it does not start within a minute: systemctl restart hyperedge$/m,
  );
  assert.match(broken, /the unit hyperedge\.service has failed \(exit-code, 5 restarts\); its last error: no disk/);
  assert.match(
    broken,
    /^ {2}journalctl -u hyperedge -n 50; then systemctl reset-failed hyperedge; systemctl start hyperedge$/m,
  );
  assert.match(stopped, /^ {2}systemctl start hyperedge; journalctl -u hyperedge -n 50$/m);
  const elsewhere = show(gathered({}, { process: failed('x') }), PLAIN, {
    ...ABOUT,
    root: '/srv/a',
    noAnswer: { why: 'silent', pid: 700 },
  });
  assert.match(elsewhere, /^ {2}kill 700; hyperedge run --root \/srv\/a$/m);
});

test('reports changed fields of the bootstrap file that need a restart', () => {
  const changed = (pendingRestart: object) => ({ ...HEALTHY.process, pendingRestart }) as typeof HEALTHY.process;
  const text = show(gathered({ process: changed({ fields: ['logging.forward', 'roles'] }) }));
  assert.match(
    text,
    /^warning bootstrap file: a restart is pending, because these fields changed: logging\.forward, roles$/m,
  );
  assert.match(text, /^ {2}hyperedge config check && systemctl restart hyperedge$/m);
  const wrong = show(gathered({ process: changed({ fields: [], problem: 'bootstrap.yaml:3: wrong: unknown field' }) }));
  assert.match(wrong, /the next start of the host process will fail: bootstrap\.yaml:3: wrong: unknown field/);
  assert.match(wrong, /^ {2}hyperedge config check$/m);
});

test('reports a unit between two restarts as failed, and a stopped unit that was never restarted as not running', () => {
  const unit = {
    load: 'loaded',
    active: 'activating',
    enabled: 'enabled',
    result: 'exit-code',
    restarts: 2,
    watchdogMs: 0,
    lastError: undefined,
  };
  assert.deepEqual(noAnswerOf(undefined, unit), { why: 'unit-failed', result: 'exit-code', restarts: 2 });
  assert.deepEqual(noAnswerOf(undefined, { ...unit, restarts: 0 }), { why: 'not-running' });
  assert.deepEqual(noAnswerOf(undefined, { ...unit, active: 'inactive' }), { why: 'not-running' });
});

test('on a blank host, suggests only an installation', () => {
  const none = absent('nothing is installed here');
  const facts = gathered(
    {},
    {
      process: failed('no answer'),
      nodes: none,
      ring: none,
      store: none,
      certificates: none,
      snapshots: none,
      update: none,
      pools: none,
      operators: none,
    },
  );
  const about = { ...ABOUT, installed: false };
  assert.equal(show(facts, PLAIN, about), 'nothing is installed below /\n\nNext:\n  hyperedge install\n');
  assert.equal(exitCodeOf(reportOf(facts, about)), 1);
});

/** Alarms of the healthy facts with these changes. */
const alarmsOf = (changed: Parameters<typeof gathered>[0]): string[] =>
  reportOf(gathered(changed), ABOUT).alarms.map(
    ({ severity, subject, message }) => `${severity} ${subject}: ${message}`,
  );

test('the status report contains an alarm with a command for each fault', () => {
  const { process, store, certificates, snapshots, update, nodes, pools } = HEALTHY;
  const [first, second] = store.members;
  const [certificate] = certificates;
  const [one] = nodes;
  const [pool] = pools;
  assert.ok(first && second && certificate && one && pool);
  const cases: readonly [changed: Parameters<typeof gathered>[0], alarm: RegExp][] = [
    [
      { process: { ...process, failures: ['api: revision 4 failed'] } },
      /^error control plane: api: revision 4 failed$/,
    ],
    [
      { process: { ...process, ready: false, components: [{ ...process.components[0], state: 'exited' } as never] } },
      /^error api: the component is exited$/,
    ],
    [
      { process: { ...process, kubernetes: { ...process.kubernetes, skew: ['pi-3 is old'] } } },
      /^warning versions: pi-3 is old$/,
    ],
    [{ store: { ...store, quorum: false } }, /^error store: no majority/],
    [{ store: { ...store, members: [{ ...first, errors: ['NOSPACE'] }] } }, /^error store member pi-1: NOSPACE$/],
    [{ store: { ...store, members: [{ ...second, lag: 1001 }] } }, /^warning store member pi-2: 1001 entries behind$/],
    [
      { store: { ...store, members: [{ ...second, state: 'unreachable' }] } },
      /^warning store member pi-2: does not answer$/,
    ],
    [
      { nodes: [{ ...one, name: 'pi-2', ready: false, reason: 'no Lease' }] },
      /^warning node pi-2: not Ready: no Lease$/,
    ],
    [{ nodes: [{ ...one, pressures: ['DiskPressure: full'] }] }, /^warning node pi-1: DiskPressure: full$/],
    [{ certificates: [{ ...certificate, notAfterMs: NOW_MS - 60_000 }] }, /^error \S+admin\.crt: expired 60s ago$/],
    [{ certificates: [{ ...certificate, notAfterMs: NOW_MS + 3_600_000 }] }, /^warning \S+admin\.crt: expires in 60m$/],
    [{ certificates: [{ ...certificate, problem: 'not readable' }] }, /^warning \S+admin\.crt: not readable$/],
    [{ snapshots: { ...snapshots, newest: undefined } }, /^warning snapshots: \S+ has no snapshot$/],
    [{ snapshots: { ...snapshots, everyMs: 3_000_000 } }, /^warning snapshots: the newest snapshot is 120m old$/],
    [{ update: { ...update, desired: '0.2.0', failing: 'bad' } }, /^warning update: the update to 0\.2\.0 fails: bad$/],
    [{ update: { ...update, unfinished: 'it is trying' } }, /^warning update: it is trying$/],
    [
      { update: { ...update, former: { version: '0.0.9', cause: 'no API server responds' } } },
      /^warning update: no API server responds; .* 0\.1\.0, which replaced 0\.0\.9$/,
    ],
    [{ pools: [{ ...pool, degraded: 'drift' }] }, /^warning pool worker: degraded: drift$/],
    [{ operators: [{ name: 'dns', state: 'degraded', message: 'slow' }] }, /^warning operator dns: degraded: slow$/],
  ];
  for (const [changed, expected] of cases) {
    const alarms = alarmsOf(changed);
    assert.equal(alarms.length, 1, alarms.join('\n'));
    assert.match(alarms[0] ?? '', expected);
    assert.notDeepEqual(reportOf(gathered(changed), ABOUT).next, []);
  }
});

test('the status report lists errors before warnings, and each command once', () => {
  const [first, second] = HEALTHY.store.members;
  assert.ok(first && second);
  const members = [
    { ...second, state: 'unreachable' as const },
    { ...first, errors: ['NOSPACE'] },
  ];
  const { alarms, next } = reportOf(gathered({ store: { quorum: true, members } }), ABOUT);
  assert.deepEqual(
    alarms.map(({ severity }) => severity),
    ['error', 'warning'],
  );
  assert.equal(new Set(next).size, next.length);
});

test('suggests an available release as the next step without an alarm', () => {
  const update = { ...HEALTHY.update, available: ['0.2.0'] };
  const report = reportOf(gathered({ update }), ABOUT);
  assert.deepEqual([report.result, report.next], ['ok', ['oc adm upgrade --to=0.2.0']]);
});

test('removes control characters from texts of other hosts', () => {
  const nodes = HEALTHY.nodes.map((each) => ({ ...each, ready: false, reason: 'a\u001b[2Jb\nc' }));
  assert.match(show(gathered({ nodes })), /^warning node pi-2: not Ready: a \[2Jb c$/m);
});
