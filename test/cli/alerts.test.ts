import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Alert } from '../../src/alerts/port.ts';
import { exitCodeOf, printAlerts } from '../../src/cli/commands/host/alerts.ts';

const alert = (given: Partial<Alert>): Alert => ({
  name: 'StoreHasNoLeader',
  state: 'firing',
  severity: 'critical',
  sinceMs: Date.UTC(2026, 0, 2, 3, 4, 5),
  summary: 'The store member edge-1 has no leader.',
  fix: 'Run "hyperedge members".',
  labels: {},
  value: 0,
  ...given,
});

test('the command alerts exits with 1 for critical alerts, 3 for warnings, and 0 for pending and informative alerts', () => {
  assert.equal(exitCodeOf({ alerts: [] }), 0);
  assert.equal(exitCodeOf({ alerts: [alert({ severity: 'warning' }), alert({})] }), 1);
  assert.equal(exitCodeOf({ alerts: [alert({ severity: 'warning' }), alert({ state: 'pending' })] }), 3);
  assert.equal(exitCodeOf({ alerts: [alert({ severity: 'info' })] }), 0);
});

test('alerts are printed with time, summary and fix, and with endpoints that do not answer', () => {
  const targets = [{ job: 'hyperedge-api', up: false, error: 'connect ECONNREFUSED' }];
  const text = printAlerts({ node: 'edge-1', evaluatedAtMs: 0, targets, alerts: [alert({})] });
  assert.match(text, /^node edge-1: 1 firing, 0 pending, evaluated 1970-01-01T00:00:00.000Z\n/);
  assert.match(text, /firing {3}critical {3}StoreHasNoLeader {3}2026-01-02T03:04:05.000Z\n/);
  assert.match(text, /StoreHasNoLeader: The store member edge-1 has no leader.\n {2}fix: Run "hyperedge members".\n/);
  assert.match(text, /hyperedge-api does not answer: connect ECONNREFUSED\n/);
  assert.match(printAlerts({ node: 'edge-1', targets: [], alerts: [] }), /not evaluated yet/);
});
