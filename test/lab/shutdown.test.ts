/**
 * Graceful node shutdown with a real systemd-logind: `systemctl poweroff` waits until the pods have ended and are
 * reported.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { HELLO_IMAGE, writeHelloImage } from '../../build/hello-image.ts';
import { eventually } from '../e2e/harness.ts';
import { NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const pod = (name: string, priorityClass: string, command: string): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: default}
spec:
  terminationGracePeriodSeconds: 30
  restartPolicy: Never
  ${priorityClass}
  containers:
  - name: main
    image: ${HELLO_IMAGE}
    command: [/bin/sh, -c, ${JSON.stringify(command)}]
`;

describe('graceful shutdown of a host', { skip: missing ?? false }, () => {
  let host: NspawnHost;

  before(async () => {
    host = await NspawnHost.create((line) => console.log(line));
    await host.boot();
    await host.must('systemctl', ['enable', '--now', 'hyperedge']);
    await ready();
    const file = join(host.root, 'etc/origin/node/node-config.yaml');
    const text = await readFile(file, 'utf8');
    const argument = 'kubeletArguments:\n  shutdown-grace-period: [12s]\n  shutdown-grace-period-critical-pods: [8s]\n';
    assert.match(text, /^kubeletArguments:\n/m);
    await writeFile(file, text.replace(/^kubeletArguments:\n/m, argument));
    await host.must('systemctl', ['restart', 'hyperedge']);
    await ready();
    await writeHelloImage(join(host.root, 'root/hello.tar'));
    await host.must('hyperedge', ['image', 'import', '/root/hello.tar']);
  });

  after(async () => {
    await host?.stop();
  });

  const ready = (): Promise<unknown> =>
    eventually('node Ready', 60_000, async () => {
      const begin = Date.now() - 5_000;
      const { stdout } = await host.kubectl(['get', 'node', host.name, '-o', 'json'], { timeoutMs: 5_000 });
      const conditions = stdout === '' ? [] : JSON.parse(stdout).status.conditions;
      const condition = conditions?.find((each: { type: string }) => each.type === 'Ready');
      return condition?.status === 'True' && Date.parse(condition.lastHeartbeatTime) > begin ? true : undefined;
    });

  test('takes an inhibitor lock of systemd-logind and requests a sufficient delay', async () => {
    const lock = await eventually('lock', 20_000, async () => {
      const { stdout } = await host.inside('systemd-inhibit', ['--list', '--no-pager', '--no-legend']);
      return stdout.includes('kubelet') ? stdout : undefined;
    });
    console.log(lock.trim());
    assert.match(lock, /kubelet\s.*shutdown\s+Kubelet needs time to handle node shutdown\s+delay/);
    const property = ['get-property', 'org.freedesktop.login1', '/org/freedesktop/login1'];
    const delay = await host.must('busctl', [...property, 'org.freedesktop.login1.Manager', 'InhibitDelayMaxUSec']);
    assert.equal(delay.trim(), 't 12000000');
  });

  test('terminates pods in the order of their priority, within their grace periods, and reports them as Terminated', async () => {
    const trap = (seconds: number): string => `trap 'sleep ${seconds}; exit 0' TERM; while true; do sleep 0.2; done`;
    const input =
      pod('stubborn', '', "trap '' TERM; while true; do sleep 0.2; done") +
      `---${pod('critical', 'priorityClassName: system-node-critical', trap(2))}`;
    await host.mustKubectl(['apply', '-f', '-'], { input });
    await host.mustKubectl(['wait', 'pod/stubborn', 'pod/critical', '--for=condition=Ready', '--timeout=30s']);
    const ms = await host.powerOff();
    console.log(`powered off in ${(ms / 1000).toFixed(1)} s`);
    assert.ok(ms > 5_500 && ms < 20_000, `${ms} ms`);
    await host.boot();
    await ready();
    const pods = JSON.parse(await host.mustKubectl(['get', 'pods', '-o', 'json'])).items;
    const times: number[] = [];
    for (const name of ['stubborn', 'critical']) {
      const found = pods.find(({ metadata }: { metadata: { name: string } }) => metadata.name === name);
      assert.equal(found.status.phase, 'Failed');
      assert.equal(found.status.reason, 'Terminated');
      assert.equal(found.status.message, 'Pod was terminated in response to imminent node shutdown.');
      times.push(Date.parse(found.status.containerStatuses[0].state.terminated.finishedAt));
    }
    assert.ok((times[0] ?? 0) < (times[1] ?? 0), `${times}`);
    const journal = await host.must('journalctl', ['--no-pager', '-u', 'hyperedge', '-b', '-1']);
    assert.match(journal, /detected shutdown event/);
    assert.match(journal, /node is shutting down|terminating pods for the node shutdown/);
  });
});
