/** Processes of probes and exec sessions: they are limited in number and end with their probe or client. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, type Ran, sleep } from '../../e2e/harness.ts';
import { pod, shell } from '../../e2e/pods/lab.ts';
import type { AttackLab } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const PROBE_SLEEP = '86461';
const SESSION_SLEEP = '86462';
const SESSIONS = 24;
const SIZES = join(import.meta.dirname, '../peers/terminal-sizes.child.ts');

async function commandLines(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return Promise.all(
    pids.map(async (pid) =>
      (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ').trim(),
    ),
  );
}

const count = async (of: (command: string) => boolean): Promise<number> => (await commandLines()).filter(of).length;

/** Host processes that serve execs: the runtime and its monitors. */
const servants = (lab: AttackLab): Promise<number> =>
  count((command) => command.includes(lab.appliance.root) && (/ exec /.test(command) || / --exec /.test(command)));

export const cases: readonly AttackCase[] = [
  {
    finding: 6,
    title: 'exec probes that time out with children leave no process, on the host or in the pod',
    attack: async (lab) => {
      const exec = {
        command: [
          '/bin/sh',
          '-c',
          `setsid sleep ${PROBE_SLEEP} & (sleep ${PROBE_SLEEP} &) ; yes & sleep ${PROBE_SLEEP}`,
        ],
      };
      const probe = { exec, periodSeconds: 1, timeoutSeconds: 1, failureThreshold: 1000 };
      const probed = (name: string) =>
        shell("trap 'exit 0' TERM; sleep 1000 & wait", {
          name,
          resources: { limits: { memory: '64Mi' } },
          readinessProbe: probe,
          livenessProbe: probe,
        });
      await lab.pods.apply(pod('leaky-probes', { containers: [probed('one'), probed('two')] }));
      await lab.pods.event('leaky-probes', 'Unhealthy', /timed out/);
      await sleep(6_000);
      // Each of the four probes is between its start and its time-out, with three sleeping children.
      assert.ok((await servants(lab)) <= 8, `${await servants(lab)} programs of the host serve the four probes`);
      const left = await count((command) => command.includes(`sleep ${PROBE_SLEEP}`));
      assert.ok(left <= 20, `${left} processes of four probes`);
      await lab.pods.remove('leaky-probes');
      await eventually('the probes end with the pod', 10_000, async () =>
        (await count((command) => command.endsWith(`sleep ${PROBE_SLEEP}`))) === 0 ? true : undefined,
      );
    },
  },
  {
    finding: 6,
    title: 'exec sessions of a container are limited, and end with their client',
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      await lab.pods.apply(
        pod('many-execs', { containers: [shell('sleep 1000 & wait')] }, { namespace: tenant.namespace }),
      );
      await lab.pods.untilPods('many-execs runs', () =>
        lab.pods.pod('many-execs', tenant.namespace)?.status?.phase === 'Running' ? true : undefined,
      );
      const command = ['/bin/sh', '-c', `setsid sleep ${SESSION_SLEEP} & sleep ${SESSION_SLEEP}`];
      const query = command.map((part) => `command=${encodeURIComponent(part)}`).join('&');
      const path = `/api/v1/namespaces/${tenant.namespace}/pods/many-execs/exec?${query}&stdout=true`;
      const clients = Array.from({ length: SESSIONS }, () => open(lab, tenant.token, path));
      try {
        await eventually('sessions are refused', 20_000, () =>
          clients.some(({ output }) => /429 Too Many Requests[\s\S]*limit is \d+/.test(output())) ? true : undefined,
        );
        const sleepers = await count((line) => line === `sleep ${SESSION_SLEEP}`);
        assert.ok(sleepers <= 2 * 16, `${sleepers} sleepers`);
        assert.match(
          await lab.pods.kubectl('get', 'pod', 'many-execs', '-n', tenant.namespace),
          /Running/,
          'the pod is unharmed',
        );
      } finally {
        for (const { child } of clients) child.kill('SIGKILL');
      }
      await eventually('sessions end with their clients', 10_000, async () =>
        (await count((line) => line === `sleep ${SESSION_SLEEP}`)) === 0 ? true : undefined,
      );
      await lab.pods.remove('many-execs', '-n', tenant.namespace);
    },
  },
  {
    finding: 53,
    title: 'a flood of terminal sizes takes no file descriptors of the host process',
    exclusive: true,
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      await lab.pods.apply(
        pod('resized', { containers: [shell('sleep 1000 & wait')] }, { namespace: tenant.namespace }),
      );
      await lab.pods.untilPods('resized runs', () =>
        lab.pods.pod('resized', tenant.namespace)?.status?.phase === 'Running' ? true : undefined,
      );
      const path = `/api/v1/namespaces/${tenant.namespace}/pods/resized/exec?command=cat&stdin=true&stdout=true&tty=true`;
      const request = JSON.stringify({ url: `wss://127.0.0.1:8443${path}`, token: tenant.token, seconds: 8 });
      const flood = (): Promise<Ran> => lab.appliance.inside(process.execPath, [SIZES, request]);
      const floods = Promise.all([flood(), flood(), flood(), flood()]);
      let most = 0;
      for (let look = 0; look < 6; look += 1) {
        await sleep(1_000);
        assert.equal(lab.appliance.exitCode, undefined, 'the host process runs');
        most = Math.max(most, (await readdir(`/proc/${lab.appliance.hostPid}/fd`)).length);
      }
      const sent = (await floods).map(({ stdout }) => Number(JSON.parse(stdout).sent));
      assert.ok(Math.min(...sent) > 5_000, `${sent} sizes sent`);
      assert.ok(most < 1_000, `${most} file descriptors`);
      await lab.pods.remove('resized', '-n', tenant.namespace);
    },
  },
];

/** An exec client that only keeps its connection open. */
function open(lab: AttackLab, token: string, path: string): { readonly child: ChildProcess; output(): string } {
  const child = lab.appliance.spawnInside('curl', [
    ...['-skiN', '--http1.1', '--max-time', '50', '-H', `Authorization: Bearer ${token}`],
    ...['-H', 'Connection: Upgrade', '-H', 'Upgrade: websocket', '-H', 'Sec-WebSocket-Version: 13'],
    ...['-H', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '-H', 'Sec-WebSocket-Protocol: v5.channel.k8s.io'],
    `https://127.0.0.1:8443${path}`,
  ]);
  let output = '';
  child.stdout?.setEncoding('latin1').on('data', (text: string) => {
    output += text;
  });
  return { child, output: () => output };
}
