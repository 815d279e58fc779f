/**
 * States of the systemd unit, distinguished by the doctor and by `hyperedge status`. The texts are outputs of systemctl 252
 * for units in these states.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKS, diagnose } from '../../../src/doctor/core/index.ts';
import type { Result } from '../../../src/doctor/port.ts';
import { unitOf } from '../../../src/host/doctor/host-facts.ts';
import { noAnswerOf, noAnswerText, reportOf, textOf } from '../../../src/status/core/index.ts';
import { gathered } from '../../doctor/facts.ts';
import { ABOUT, failed, gathered as gatheredStatus } from '../../status/facts.ts';

const shown = (watchdog: string, result: string, restarts: number, load: string, active: string, file: string) =>
  `WatchdogUSec=${watchdog}\nResult=${result}\nNRestarts=${restarts}\nLoadState=${load}\nActiveState=${active}\nUnitFileState=${file}\n`;

interface State {
  readonly what: string;
  readonly shown: string;
  readonly lastError?: string;
  readonly result: Result;
  readonly evidence: RegExp;
  readonly fix?: RegExp;
  /** Reason of `hyperedge status` if the host process holds no lock. */
  readonly reason: RegExp;
  readonly next: RegExp;
}

const START = /^ {2}systemctl start hyperedge; journalctl -u hyperedge -n 50$/m;
const RESET = /^ {2}journalctl -u hyperedge -n 50; then systemctl reset-failed hyperedge; systemctl start hyperedge$/m;

const STATES: readonly State[] = [
  {
    what: 'running',
    shown: shown('1min', 'success', 0, 'loaded', 'active', 'enabled'),
    result: 'ok',
    evidence: /^active, 0 restarts$/,
    reason: /^the host process does not run here$/,
    next: START,
  },
  {
    what: 'failed',
    shown: shown('0', 'exit-code', 0, 'loaded', 'failed', 'enabled'),
    lastError: 'bootstrap.yaml:3: rolls: unknown field',
    result: 'error',
    evidence: /^hyperedge\.service is failed \(exit-code\): bootstrap\.yaml:3: rolls: unknown field$/,
    fix: /^systemctl reset-failed hyperedge; systemctl start hyperedge$/,
    reason: /^the unit hyperedge\.service has failed \(exit-code, 0 restarts\); its last error: bootstrap\.yaml:3/,
    next: RESET,
  },
  {
    what: 'between two start attempts',
    shown: shown('1min', 'exit-code', 2, 'loaded', 'activating', 'enabled'),
    result: 'error',
    evidence: /^hyperedge\.service is activating \(exit-code\)$/,
    fix: /^systemctl reset-failed hyperedge; systemctl start hyperedge$/,
    reason: /^the unit hyperedge\.service has failed \(exit-code, 2 restarts\)$/,
    next: RESET,
  },
  {
    what: 'in its first start',
    shown: shown('1min', 'success', 0, 'loaded', 'activating', 'enabled'),
    result: 'warning',
    evidence: /^hyperedge\.service is still starting$/,
    fix: /^journalctl -u hyperedge -n 50 --no-pager$/,
    reason: /^the host process does not run here$/,
    next: START,
  },
  {
    what: 'stopped',
    shown: shown('1min', 'success', 0, 'loaded', 'inactive', 'enabled'),
    result: 'error',
    evidence: /^hyperedge\.service is inactive \(success\)$/,
    fix: /systemctl start hyperedge$/,
    reason: /^the host process does not run here$/,
    next: START,
  },
  {
    what: 'not installed',
    shown: shown('infinity', 'success', 0, 'not-found', 'inactive', ''),
    result: 'error',
    evidence: /^hyperedge\.service is not installed$/,
    fix: /^hyperedge install$/,
    reason: /^the unit hyperedge\.service is not installed$/,
    next: /^ {2}hyperedge install/m,
  },
  {
    what: 'masked',
    shown: shown('infinity', 'success', 0, 'masked', 'inactive', 'masked'),
    result: 'error',
    evidence: /^hyperedge\.service is masked: it cannot start$/,
    fix: /^systemctl unmask hyperedge && systemctl enable --now hyperedge$/,
    reason: /^the unit hyperedge\.service cannot start: it is masked$/,
    next: /^ {2}systemctl unmask hyperedge; systemctl start hyperedge$/m,
  },
  {
    what: 'invalid',
    shown: shown('infinity', 'success', 0, 'bad-setting', 'inactive', 'enabled'),
    result: 'error',
    evidence: /^hyperedge\.service cannot be loaded \(bad-setting\)$/,
    fix: /^systemd-analyze verify hyperedge\.service; hyperedge install/,
    reason: /^the unit hyperedge\.service cannot start: it is bad-setting$/,
    next: /^ {2}hyperedge install/m,
  },
];

for (const { what, shown: text, lastError, result, evidence, fix, reason, next } of STATES)
  test(`recognizes a unit that is ${what}`, () => {
    const unit = unitOf(text, lastError);
    const [report] = diagnose(
      CHECKS.filter(({ id }) => id === 'systemd-unit'),
      gathered({ unit }),
    );
    assert.equal(report?.result, result, JSON.stringify(report));
    assert.equal(report?.findings.length, 1, JSON.stringify(report));
    assert.match(report?.findings[0]?.evidence ?? '', evidence);
    if (fix !== undefined) assert.match(report?.findings[0]?.fix ?? '', fix);

    const noAnswer = noAnswerOf(undefined, unit);
    const why = noAnswerText(noAnswer, '/run/hyperedge/control.sock') ?? 'the host process does not run here';
    assert.match(why, reason);
    const about = { ...ABOUT, noAnswer };
    const facts = gatheredStatus({}, { process: failed(why) });
    assert.match(textOf(reportOf(facts, about), { reason: why }, about, { wide: false, colours: false }), next);
  });

test('reports a unit without a watchdog, but not a unit that is not installed', () => {
  const watchdog = (text: string): Result | undefined =>
    diagnose(
      CHECKS.filter(({ id }) => id === 'watchdog'),
      gathered({ unit: unitOf(text, undefined) }),
    )[0]?.result;
  assert.equal(watchdog(shown('1min', 'success', 0, 'loaded', 'active', 'enabled')), 'ok');
  assert.equal(watchdog(shown('0', 'success', 0, 'loaded', 'active', 'enabled')), 'warning');
  assert.equal(watchdog(shown('1min', 'watchdog', 1, 'loaded', 'activating', 'enabled')), 'warning');
  assert.equal(watchdog(shown('infinity', 'success', 0, 'not-found', 'inactive', '')), 'ok');
});
