import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { alertsOf, expiriesOf, snapshotsOf } from '../../../../src/console/data/hosts/maintenance.ts';

const node = (name: string, ...conditions: readonly (readonly [string, string, string])[]) => ({
  metadata: { name },
  status: { conditions: conditions.map(([type, status, message]) => ({ type, status, message })) },
});

suite('alerts and maintenance', () => {
  test('an alert has the summary and the fix of its rule', () => {
    const message = 'NodeMemoryIsAlmostUsedUp (warning), StoreHasNoLeader (critical); run "hyperedge alerts"';
    const alerts = alertsOf([node('edge-1', ['HyperedgeAlerts', 'True', message]), node('edge-2')]);
    assert.deepEqual(
      alerts.map(({ name, node: on, severity }) => [name, on, severity]),
      [
        ['StoreHasNoLeader', 'edge-1', 'critical'],
        ['NodeMemoryIsAlmostUsedUp', 'edge-1', 'warning'],
      ],
    );
    assert.equal(alerts[0]?.summary, 'The store member edge-1 has no leader.');
    assert.match(alerts[0]?.fix ?? '', /hyperedge members/);
  });

  test('an alert of a newer release has a general fix, and resolved alerts are not shown', () => {
    const [alert] = alertsOf([node('a', ['HyperedgeAlerts', 'True', 'NewAlert (warning); run x'])]);
    assert.deepEqual([alert?.summary, alert?.fix], ['', 'Run "hyperedge alerts" on the host.']);
    assert.deepEqual(alertsOf([node('a', ['HyperedgeAlerts', 'False', 'NewAlert (warning)'])]), []);
  });

  test('shows the earliest expiry and the newest snapshot first, and other conditions only if they need attention', () => {
    const expiry = (date: string) => `next expiry ${date}T00:00:00Z: x.crt`;
    const nodes = [
      node('a', ['CertificateExpiresSoon', 'False', expiry('2028-01-01')]),
      node(
        'b',
        ['CertificateExpiresSoon', 'False', expiry('2027-01-01')],
        ['SnapshotOverdue', 'False', 'last snapshot 2026-11-26T00:00:00Z'],
      ),
      node('c', ['SnapshotOverdue', 'True', 'last snapshot 2026-11-01T00:00:00Z']),
    ];
    assert.deepEqual(
      expiriesOf(nodes).map((each) => each.node),
      ['b'],
    );
    assert.deepEqual(
      snapshotsOf(nodes).map((each) => [each.node, each.needsAttention]),
      [
        ['b', false],
        ['c', true],
      ],
    );
  });
});
