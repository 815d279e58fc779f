/**
 * Faults of the systemd unit, each with the fix that `hyperedge doctor` prints: the shell of the host runs it as
 * printed, and then the doctor must not report the finding. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { DoctorReport, Finding } from '../../src/doctor/port.ts';
import { eventually } from '../e2e/harness.ts';
import { NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const FAULT_MS = 240_000;

interface UnitFault {
  readonly what: string;
  readonly provoke: string;
  readonly evidence: RegExp;
  readonly fix: RegExp;
  /** Text of `hyperedge status`. */
  readonly status: RegExp;
}

const FAULTS: readonly UnitFault[] = [
  {
    what: 'stopped',
    provoke: 'systemctl stop hyperedge',
    evidence: /^hyperedge\.service is inactive \(success\)/,
    fix: /^systemctl reset-failed hyperedge; systemctl start hyperedge$/,
    status: /^ {2}systemctl start hyperedge; /m,
  },
  {
    what: 'failed',
    provoke: `mkdir -p /run/systemd/system/hyperedge.service.d
      printf '[Service]\\nRestart=no\\n' > /run/systemd/system/hyperedge.service.d/once.conf
      systemctl daemon-reload; systemctl kill -s KILL --kill-who=main hyperedge
      while systemctl is-active -q hyperedge; do sleep 0.2; done
      rm -r /run/systemd/system/hyperedge.service.d; systemctl daemon-reload`,
    evidence: /^hyperedge\.service is failed \(signal\)/,
    fix: /^systemctl reset-failed hyperedge; systemctl start hyperedge$/,
    status: /the unit hyperedge\.service has failed \(signal, 0 restarts\)/,
  },
  {
    what: 'missing',
    provoke: `file=$(systemctl show hyperedge -p FragmentPath --value); systemctl stop hyperedge
      systemctl disable -q hyperedge; rm "$file"; systemctl daemon-reload`,
    evidence: /^hyperedge\.service is not installed$/,
    fix: /^\S+ install$/,
    status: /the unit hyperedge\.service is not installed/,
  },
  {
    what: 'disabled',
    provoke: 'systemctl disable -q hyperedge',
    evidence: /^hyperedge\.service is disabled: it does not start at boot$/,
    fix: /^systemctl enable hyperedge$/,
    status: /Ready/,
  },
  {
    // A unit of the administrator's directory cannot be masked; a package puts it into systemd's.
    what: 'masked',
    provoke: `file=$(systemctl show hyperedge -p FragmentPath --value); systemctl stop hyperedge
      systemctl disable -q hyperedge; mv "$file" /usr/lib/systemd/system/hyperedge.service
      systemctl daemon-reload; systemctl mask -q hyperedge`,
    evidence: /^hyperedge\.service is masked: it cannot start$/,
    fix: /^systemctl unmask hyperedge && systemctl enable --now hyperedge$/,
    status: /masked/,
  },
];

describe('faults of the unit hyperedge.service', { skip: missing ?? false }, () => {
  let host: NspawnHost;

  before(
    async () => {
      host = await NspawnHost.create((line) => console.log(line));
      await host.boot();
      await host.must('systemctl', ['enable', '--now', 'hyperedge'], { timeoutMs: 120_000 });
    },
    { timeout: 300_000 },
  );

  after(async () => {
    await host?.stop();
  });

  const findings = async (): Promise<readonly Finding[]> => {
    const ran = await host.inside('hyperedge', ['doctor', '--check', 'systemd-unit', '-o', 'json']);
    const { checks }: DoctorReport = JSON.parse(ran.stdout);
    return (checks[0]?.findings ?? []).filter(({ result }) => result !== 'ok');
  };

  for (const { what, provoke, evidence, fix, status } of FAULTS)
    test(`hyperedge doctor suggests a fix that works if hyperedge.service is ${what}`, {
      timeout: FAULT_MS,
    }, async () => {
      await host.must('sh', ['-c', provoke], { timeoutMs: 120_000 });
      const found = await findings();
      const finding = found.find((each) => evidence.test(each.evidence));
      assert.ok(finding !== undefined, JSON.stringify(found));
      assert.match(finding.fix ?? '', fix);
      const report = await host.inside('hyperedge', ['status']);
      assert.match(report.stdout, status);
      await host.must('sh', ['-c', finding.fix ?? ''], { timeoutMs: 180_000 });
      await eventually('no finding', 120_000, async () => ((await findings()).length === 0 ? true : undefined));
    });
});
