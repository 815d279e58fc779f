/**
 * The arm64 executable under qemu-user: its commands, and the host process with the control plane in containers. Pods
 * of other images are not started. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { podLevels, removeNewPodLevels } from '../../build/pod-levels.ts';
import { eventually } from '../e2e/harness.ts';
import { EmulatedHost, whyNoArm64 } from './support/emulated-host.ts';

const missing = whyNoArm64();
if (missing !== undefined) console.log(`not run: ${missing}`);

/** Emulation makes JavaScript 10 to 30 times slower. */
const START_MS = 420_000;

describe('arm64 executable', { skip: missing ?? false }, () => {
  let host: EmulatedHost;
  let running: ChildProcess | undefined;
  let output = '';
  let levels: readonly string[] = [];

  before(async () => {
    levels = await podLevels();
    host = await EmulatedHost.create();
  });

  after(async () => {
    if (running !== undefined && running.exitCode === null) {
      const ended = new Promise((resolve) => running?.once('exit', resolve));
      // SIGTERM ends the pods too.
      running.kill('SIGTERM');
      await ended;
    }
    await host?.stop();
    await removeNewPodLevels(levels);
  });

  const ok = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await host.hyperedge(args);
    assert.equal(code, 0, `${args.join(' ')}: ${stdout}${stderr}`);
    return stdout;
  };

  test('the arm64 executable prints version and help', async () => {
    assert.match(await ok('version'), /^hyperedge \S+ \(Kubernetes v1\.36\.\d+\S*, Node v24\.\d+\.\d+, linux\/arm64\)/);
    assert.match(await ok('help'), /install this executable as a service/);
    assert.match(await ok('kubectl', 'version', '--client'), /^Client Version: v1\.36/);
  });

  test('the arm64 executable checks the bootstrap file and the machine', { timeout: 240_000 }, async () => {
    assert.match(await ok('config', 'check', '--root', host.root), /bootstrap\.yaml/);
    const { code, stdout, stderr } = await host.hyperedge(['doctor', '--preflight', '--root', host.root, '-o', 'json']);
    assert.ok(code === 0 || code === 3, `${code}: ${stdout}${stderr}`);
    const checks: { id: string; result: string; findings: object[] }[] = JSON.parse(stdout).checks;
    const unknown = checks.filter(({ result }) => result === 'unknown' || result === 'error');
    assert.deepEqual(unknown, []);
  });

  test('the arm64 executable starts the control plane and serves the API', {
    timeout: START_MS + 120_000,
  }, async () => {
    const began = performance.now();
    running = host.start(['run', '--root', host.root]);
    for (const stream of [running.stdout, running.stderr])
      stream?.on('data', (part: Buffer) => {
        output = `${output}${part}`.slice(-20_000);
      });
    const kubeconfig = join(host.root, 'etc/origin/master/admin.kubeconfig');
    const call = (...args: string[]) => host.hyperedge(['kubectl', '--kubeconfig', kubeconfig, ...args], 60_000);
    await eventually('an API server that is ready', START_MS, async () => {
      assert.equal(running?.exitCode, null, output);
      if (!existsSync(kubeconfig)) return undefined;
      return (await call('get', '--raw', '/readyz')).stdout === 'ok' ? true : undefined;
    }).catch((error: unknown) => assert.fail(`${error}\n${output}`));
    const nodes = await eventually('the registered node', 120_000, async () => {
      const { stdout } = await call('get', 'nodes', '-o', 'jsonpath={.items[*].status.nodeInfo.architecture}');
      return stdout === '' ? undefined : stdout;
    });
    assert.equal(nodes, 'arm64');
    const created = await call('create', 'configmap', 'emulated', '--from-literal=a=b');
    assert.equal(created.stdout, 'configmap/emulated created\n', created.stderr);
    console.log(`arm64: API and node ${((performance.now() - began) / 1000).toFixed(0)} s after the start`);
  });
});
