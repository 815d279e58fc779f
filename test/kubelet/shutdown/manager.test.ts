/** Machine shutdown: pods end by priority, their statuses are reported, and no pod starts any more. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Node, Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import type { KubeletDeps } from '../../../src/kubelet/index.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

class Login {
  delaySeconds = 5;
  locks = 0;
  announce: (begins: boolean) => void = () => {};
  readonly lost = new Promise<void>(() => {});

  readonly port: NonNullable<KubeletDeps['login']> = {
    maxDelayMs: async () => this.delaySeconds * 1000,
    raiseMaxDelay: async (ms) => {
      this.delaySeconds = ms / 1000;
    },
    lock: async () => {
      this.locks += 1;
      return {
        release: () => {
          this.locks -= 1;
        },
      };
    },
    follow: async (listener) => {
      this.announce = listener;
      return { close: () => {}, lost: this.lost };
    },
  };
}

const ready = (node: Node | undefined) => node?.status?.conditions?.find(({ type }) => type === 'Ready');

describe('a node that shuts down', { timeout: 90_000 }, () => {
  const api = new MemoryApi();
  const login = new Login();
  let lab: KubeletLab;
  const pod = (name: string): Pod | undefined => api.get(resources.pods, `default/${name}`);
  const put = (name: string, priority: number, command: string[]): void => {
    api.put(resources.pods, {
      metadata: { name, namespace: 'default', uid: `uid-${name}` },
      spec: {
        nodeName: NODE,
        hostNetwork: true,
        terminationGracePeriodSeconds: 20,
        priority,
        containers: [{ name: 'main', image: IMAGE, imagePullPolicy: 'IfNotPresent', command }],
      },
      status: { phase: 'Pending' },
    });
  };
  const phase = (name: string, wanted: string): Promise<Pod> =>
    eventually(`${name} ${wanted}`, () => (pod(name)?.status?.phase === wanted ? pod(name) : undefined), 20_000);

  before(async () => {
    lab = await createKubeletLab(
      {
        shutdownPeriods: [
          { priority: 0, seconds: 2 },
          { priority: 1_000, seconds: 8 },
        ],
      },
      login.port,
    );
    // The first pod ignores SIGTERM.
    put('stubborn', 0, ['/bin/sh', '-c', 'trap "" TERM; while true; do /bin/sleep 1; done']);
    put('important', 2_000, ['/bin/sh', '-c', 'trap "exit 0" TERM; while true; do /bin/sleep 0.1; done']);
    await lab.boot(api.access());
    await phase('stubborn', 'Running');
    await phase('important', 'Running');
  });
  after(() => lab?.cleanUp());

  it('a node holds a shutdown lock that covers its shutdown periods', async () => {
    await eventually('lock', () => login.locks === 1 || undefined);
    assert.equal(login.delaySeconds, 10);
    await eventually('ready', () => ready(api.get(resources.nodes, NODE))?.status === 'True' || undefined);
  });

  it('ends pods by priority with upstream’s reason and condition, and then releases the lock', async () => {
    login.announce(true);
    const notReady = await eventually('not ready', () => {
      const condition = ready(api.get(resources.nodes, NODE));
      return condition?.status === 'False' ? condition : undefined;
    });
    assert.equal(notReady.message, 'node is shutting down');
    put('late', 0, ['/bin/sleep', '1000']);
    const late = await phase('late', 'Failed');
    assert.equal(late.status?.reason, 'NodeShutdown');
    assert.equal(late.status?.message, 'Pod was rejected: Pod was rejected as the node is shutting down.');
    const first = await phase('stubborn', 'Failed');
    const second = await phase('important', 'Failed');
    for (const { status } of [first, second]) {
      assert.equal(status?.reason, 'Terminated');
      assert.equal(status?.message, 'Pod was terminated in response to imminent node shutdown.');
      const target = status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
      assert.equal(target?.reason, 'TerminationByKubelet');
    }
    await eventually('lock released', () => login.locks === 0 || undefined);
    const ended = ({ status }: Pod): number =>
      Date.parse(status?.containerStatuses?.[0]?.state?.terminated?.finishedAt ?? '');
    const [low, high] = await eventually('times of both', () => {
      const times = [first, second].map((each) => ended(pod(each.metadata?.name ?? '') ?? each));
      return times.some(Number.isNaN) ? undefined : times;
    });
    assert.ok((low ?? 0) <= (high ?? 0), `${low} before ${high}`);
    assert.ok(api.events.some(({ reason, object }) => reason === 'NodeShutdown' && object.includes(NODE)));
  });

  it('takes the lock again and restarts pods when the shutdown is cancelled', async () => {
    login.announce(false);
    await eventually('lock', () => login.locks === 1 || undefined);
    await eventually('ready', () => ready(api.get(resources.nodes, NODE))?.status === 'True' || undefined);
    put('next', 0, ['/bin/sleep', '1000']);
    await phase('next', 'Running');
  });
});
