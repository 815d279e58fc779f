/** Pods whose devices are unavailable: a device plug-in with an invalid response, and a claim without its driver. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Container, Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import { NodeDevices } from '../../../src/kubelet/devices/node-devices.ts';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import { createPluginSockets } from '../../../src/kubelet/io/plugins/plugin-sockets.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import { openChannel } from '../../../src/wire/grpc/plugin-calls.ts';
import type { RpcListener } from '../../../src/wire/grpc/port.ts';
import { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { eventually } from '../../e2e/harness.ts';
import { MemoryApi } from '../memory-api.ts';

const RESOURCE = 'vendor.example/board';
const EMPTY = Buffer.alloc(0);
const path = (from: string, to: string): Buffer =>
  new Writer(64).message(3, new Writer(64).string(1, from).string(2, to).string(3, 'rw').finish()).finish();
const answerOf = (...containers: readonly Buffer[]): Buffer => {
  const writer = new Writer(64);
  for (const each of containers) writer.message(1, each);
  return writer.finish();
};

const podOf = (name: string, spec: object): Pod =>
  ({ metadata: { name, namespace: 'default', uid: `uid-${name}` }, spec }) as unknown as Pod;
const main = (more: object): Container => ({ name: 'main', image: 'i', resources: more }) as never;

describe('pods with unavailable devices', () => {
  const api = new MemoryApi();
  const seen: string[] = [];
  let root: string;
  let devices: NodeDevices;
  let plugin: RpcListener;
  let answer: Buffer = EMPTY;

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'df-'));
    await mkdir(join(root, 'device-plugins'));
    devices = new NodeDevices({
      root,
      clock,
      log: silentLog,
      nodeName: toNodeName('n'),
      files: createKubeletFiles(createMounter()),
      sockets: createPluginSockets({ clock, log: silentLog }),
      cdi: { read: async () => [] },
      scanner: { scan: async () => [], watch: () => ({ close: () => {} }) },
      pods: () => [],
      onChanged: () => {},
      node: () => undefined,
      warn: () => {},
      failPod: (uid, reason, message) => void seen.push(`${uid} failed: ${reason}: ${message}`),
      warnOfPod: (pod, reason, message) => void seen.push(`${pod.metadata?.name} warned: ${reason}: ${message}`),
    });
    await devices.start();
    devices.connect(api.client());
    plugin = createRpcListener({ host: '', port: 0, path: join(root, 'device-plugins/b.sock'), log: silentLog });
    const board = new Writer(32).string(1, 'a').string(2, 'Healthy').finish();
    await plugin.listen({
      hasService: () => true,
      unary: (method) => (method.endsWith('/Allocate') ? (_, call) => call.reply(answer) : undefined),
      stream: () => (call) => {
        call.send(new Writer(32).message(1, board).finish());
        return { message: () => {}, ended: () => {}, closed: () => {}, drained: () => {} };
      },
      http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
    });
    const channel = openChannel(join(root, 'device-plugins/kubelet.sock'), clock, silentLog);
    const registration = new Writer(64).string(1, 'v1beta1').string(2, 'b.sock').string(3, RESOURCE).finish();
    await channel.unary('/v1beta1.Registration/Register', registration, 2_000);
    channel.close();
    await eventually('the board', 5_000, () => (devices.amounts().get(RESOURCE)?.[1] === 1 ? true : undefined));
  });
  after(async () => {
    await devices.stop();
    await plugin.close(0);
    await rm(root, { recursive: true });
  });

  for (const [what, given, problem] of [
    ['responses for two containers', answerOf(EMPTY, EMPTY), /2 container responses; expected 1/],
    ['a path outside of /dev', answerOf(path('/dev/../etc', '/dev/null')), /path "\/dev\/..\/etc" is not absolute/],
    ['an empty response', EMPTY, /0 container responses; expected 1/],
  ] as const) {
    it(`pods with unavailable devices fail with upstream's reason when the plug-in answers with ${what}`, async () => {
      answer = given;
      const container = main({ limits: { [RESOURCE]: '1' }, requests: { [RESOURCE]: '1' } });
      await assert.rejects(devices.allocate(podOf('lied-to', { containers: [container] }), container), problem);
      const [reported] = seen.splice(0);
      assert.match(
        reported ?? '',
        /^uid-lied-to failed: UnexpectedAdmissionError: Allocate failed due to .*, which is unexpected$/,
      );
      assert.deepEqual(devices.podResources(), []);
    });
  }

  it("pods with unavailable devices wait with an event when the claim's driver is not on the node", async () => {
    const results = [{ request: 'gpu', driver: 'gpu.example.com', pool: 'n', device: 'gpu-0' }];
    api.put(resources.resourceClaims, {
      metadata: { name: 'mine', namespace: 'default', uid: 'claim-1' },
      status: { allocation: { devices: { results } }, reservedFor: [{ resource: 'pods', name: 'p', uid: 'uid-p' }] },
    });
    const container = main({ claims: [{ name: 'gpu' }] });
    const resourceClaims = [{ name: 'gpu', resourceClaimName: 'mine' }];
    await assert.rejects(devices.allocate(podOf('p', { containers: [container], resourceClaims }), container));
    assert.deepEqual(seen.splice(0), [
      'p warned: FailedPrepareDynamicResources: Failed to prepare dynamic resources: DRA driver gpu.example.com is not registered',
    ]);
  });
});
