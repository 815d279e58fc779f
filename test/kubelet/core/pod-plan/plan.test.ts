import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, PodSpec } from '../../../../src/api/generated/core/v1.ts';
import { World } from './world.ts';

const app = (name: string, more: Partial<Container> = {}): Container => ({ name, image: 'i', ...more });
const sidecar = (name: string, more: Partial<Container> = {}): Container => ({
  name,
  image: 'i',
  restartPolicy: 'Always',
  ...more,
});
const world = (spec: Partial<PodSpec>): World => new World({ containers: [app('main')], ...spec });

const condition = (w: World, type: string) => w.status.conditions?.find((each) => each.type === type);

describe('start of a pod', () => {
  it('a new pod gets a sandbox, then its containers, then becomes ready', () => {
    const w = world({ containers: [app('b'), app('a')] });
    w.report(w.plan());
    assert.equal(w.status.phase, 'Pending');
    assert.equal(w.status.containerStatuses?.[0]?.state?.waiting?.reason, 'ContainerCreating');
    assert.equal(condition(w, 'PodReadyToStartContainers')?.status, 'False');
    w.settle();
    assert.deepEqual(w.history, ['sandbox#0', 'start b#0', 'start a#0']);
    assert.equal(w.status.phase, 'Running');
    assert.equal(w.status.podIP, '10.0.0.1');
    assert.deepEqual(
      w.status.containerStatuses?.map((each) => each.name),
      ['a', 'b'],
    );
    assert.deepEqual(
      w.status.conditions?.map((each) => `${each.type}=${each.status}`),
      ['PodReadyToStartContainers=True', 'Initialized=True', 'Ready=True', 'ContainersReady=True', 'PodScheduled=True'],
    );
  });

  it('reports observedGeneration in the status and the conditions of a pod', () => {
    const w = world({});
    const generations = (): (number | undefined)[] =>
      [w.status, ...(w.status.conditions ?? [])].map(
        (each) => (each as { observedGeneration?: number }).observedGeneration,
      );
    w.settle();
    assert.deepEqual(generations(), new Array(6).fill(undefined), 'a static pod has none');
    for (const generation of [1, 2]) {
      w.pod = { ...w.pod, metadata: { ...w.pod.metadata, generation } };
      w.settle();
      assert.deepEqual(generations(), new Array(6).fill(generation));
    }
  });

  it('runs init containers in sequence and retries failed init containers', () => {
    const w = world({ initContainers: [app('one'), app('two')] });
    w.settle();
    assert.deepEqual(w.history, ['sandbox#0', 'start one#0']);
    assert.equal(w.status.containerStatuses?.[0]?.state?.waiting?.reason, 'PodInitializing');
    assert.equal(condition(w, 'Initialized')?.message, 'containers with incomplete status: [one two]');
    w.exit('one', 1);
    w.settle();
    assert.equal(w.history.at(-1), 'start one#1');
    w.exit('one', 0);
    w.settle();
    assert.equal(w.history.at(-1), 'start two#0');
    w.exit('two', 0);
    w.settle();
    assert.equal(w.history.at(-1), 'start main#0');
    assert.equal(w.status.phase, 'Running');
    assert.deepEqual(
      w.status.initContainerStatuses?.map((each) => each.ready),
      [true, true],
    );
  });

  it('fails a pod permanently after a failed init container with restartPolicy Never', () => {
    const w = world({ restartPolicy: 'Never', initContainers: [app('one')] });
    w.settle();
    w.exit('one', 1);
    assert.equal(w.settle().finished, true);
    assert.equal(w.status.phase, 'Failed');
    assert.deepEqual(w.history, ['sandbox#0', 'start one#0', 'stop sandbox']);
  });

  it('waits until a sidecar has started before later containers', () => {
    const w = world({ initContainers: [sidecar('helper', { startupProbe: { periodSeconds: 1 } }), app('one')] });
    w.settle();
    assert.deepEqual(w.running(), ['helper']);
    w.probeResults.set('helper-0', { startup: 'success' });
    w.settle();
    assert.deepEqual(w.running(), ['helper', 'one']);
    w.exit('one', 0);
    w.settle();
    assert.deepEqual(w.running(), ['helper', 'main']);
  });
});

describe('restart of containers', () => {
  it('the first restart is immediate, later restarts back off up to five minutes, and ten minutes without a failure reset it', () => {
    const w = world({});
    w.settle();
    const waits: number[] = [];
    for (let crash = 0; crash < 8; crash += 1) {
      w.exit('main', 1);
      const plan = w.settle();
      const wait = plan.wakeAtMs === undefined ? 0 : plan.wakeAtMs - w.latest('main').finishedAtMs;
      waits.push(wait / 1000);
      if (wait > 0) {
        assert.equal(w.status.containerStatuses?.[0]?.state?.waiting?.reason, 'CrashLoopBackOff');
        assert.equal(w.status.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 1);
        assert.equal(w.status.phase, 'Running');
        w.nowMs += wait;
        w.settle();
      }
      w.nowMs += 1000;
    }
    assert.deepEqual(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
    assert.equal(w.status.containerStatuses?.[0]?.restartCount, 8);
    w.nowMs += 601_000;
    w.exit('main', 1);
    assert.equal(w.settle().wakeAtMs, undefined);
  });

  it('the restart of a critical static pod waits at most ten seconds', () => {
    const w = world({ priorityClassName: 'system-node-critical' });
    w.pod = { ...w.pod, metadata: { ...w.pod.metadata, annotations: { 'kubernetes.io/config.source': 'file' } } };
    w.settle();
    const waits: number[] = [];
    for (let crash = 0; crash < 7; crash += 1) {
      w.exit('main', 1);
      const { wakeAtMs } = w.settle();
      const wait = wakeAtMs === undefined ? 0 : wakeAtMs - w.latest('main').finishedAtMs;
      waits.push(wait / 1000);
      w.nowMs += wait;
      w.settle();
      w.nowMs += 1000;
    }
    assert.deepEqual(waits, [0, 1, 2, 4, 8, 10, 10]);
    w.nowMs += 21_000;
    w.exit('main', 1);
    assert.equal(w.settle().wakeAtMs, undefined);
  });

  it('the kubelet applies the restart policy of a pod', () => {
    for (const [policy, code, restarted, phase] of [
      ['Always', 0, true, 'Running'],
      ['OnFailure', 0, false, 'Succeeded'],
      ['OnFailure', 1, true, 'Running'],
      ['Never', 0, false, 'Succeeded'],
      ['Never', 1, false, 'Failed'],
    ] as const) {
      const w = world({ restartPolicy: policy });
      w.settle();
      w.exit('main', code);
      assert.equal(w.settle().finished, !restarted, `${policy} ${code}`);
      assert.equal(w.running().length, restarted ? 1 : 0);
      assert.equal(w.status.phase, phase);
    }
  });

  it('replaces a container whose spec changed or whose liveness probe failed', () => {
    const w = world({
      containers: [app('main', { livenessProbe: { terminationGracePeriodSeconds: 7 } }), app('other')],
    });
    w.settle();
    w.probeResults.set('main-0', { liveness: 'failure' });
    const [kill] = w.plan().actions;
    assert.deepEqual(kill, {
      type: 'killContainer',
      containerId: 'main-0',
      name: 'main',
      graceSeconds: 7,
      message: 'Container main failed liveness probe, will be restarted',
    });
    w.settle();
    w.pod = { ...w.pod, spec: { containers: [app('main', { image: 'other' }), app('other')] } };
    w.settle();
    assert.deepEqual(w.history.slice(3), ['kill main', 'start main#1', 'kill main']);
    assert.equal(w.status.containerStatuses?.[0]?.state?.waiting?.reason, 'CrashLoopBackOff');
    assert.deepEqual(w.running(), ['other']);
  });

  it('a pod starts again in a new sandbox after the old sandbox is lost', () => {
    const w = world({ initContainers: [app('one')] });
    w.settle();
    w.exit('one', 0);
    w.settle();
    w.loseSandbox();
    w.settle();
    assert.deepEqual(w.history.slice(-2), ['sandbox#1', 'start one#1']);
    w.exit('one', 0);
    w.settle();
    assert.equal(w.history.at(-1), 'start main#1');
  });

  it('a pod with restartPolicy Never fails when its sandbox is lost', () => {
    const w = world({ restartPolicy: 'Never' });
    w.settle();
    w.loseSandbox();
    assert.equal(w.settle().finished, true);
    assert.equal(w.status.phase, 'Failed');
    assert.equal(w.sandboxes.length, 1);
  });
});

describe('termination of a pod', () => {
  it('stops containers first, then sidecars in reverse order, then the sandbox', () => {
    const w = world({ initContainers: [sidecar('first'), sidecar('second')], containers: [app('a'), app('b')] });
    w.settle();
    w.history.length = 0;
    w.termination = { startedAtMs: w.nowMs, graceSeconds: 30 };
    assert.equal(w.settle().finished, true);
    assert.deepEqual(w.history, ['kill a', 'kill b', 'kill second', 'kill first', 'stop sandbox']);
    assert.equal(w.status.phase, 'Failed');
  });

  it('a job with sidecars succeeds when its main containers have succeeded', () => {
    const w = world({ restartPolicy: 'OnFailure', initContainers: [sidecar('helper')] });
    w.settle();
    w.exit('main', 0);
    assert.equal(w.settle().finished, true);
    assert.deepEqual(w.history.slice(-2), ['kill helper', 'stop sandbox']);
    assert.equal(w.status.phase, 'Succeeded');
    assert.equal(condition(w, 'Ready')?.reason, 'PodCompleted');
  });

  it('stops a pod that exceeds its activeDeadlineSeconds', () => {
    const w = world({ activeDeadlineSeconds: 60 });
    assert.equal(w.settle().wakeAtMs, w.startedAtMs + 60_000);
    w.nowMs = w.startedAtMs + 60_000;
    assert.equal(w.settle().finished, true);
    assert.equal(w.status.phase, 'Failed');
    assert.equal(w.status.reason, 'DeadlineExceeded');
  });

  it('reports containers that the runtime cannot find as lost', () => {
    const w = world({});
    w.settle();
    w.containers = [];
    w.sandboxes = [];
    w.termination = { startedAtMs: w.nowMs, graceSeconds: 30 };
    w.settle();
    const terminated = w.status.containerStatuses?.[0]?.state?.terminated;
    assert.equal(terminated?.reason, 'ContainerStatusUnknown');
    assert.equal(terminated?.exitCode, 137);
    assert.equal(w.status.phase, 'Failed');
  });
});

describe('readiness of a pod', () => {
  it('readiness depends on probes and readiness gates', () => {
    const w = world({
      containers: [app('main', { readinessProbe: {} })],
      readinessGates: [{ conditionType: 'example.com/gate' }],
    });
    w.settle();
    assert.equal(condition(w, 'ContainersReady')?.message, 'containers with unready status: [main]');
    w.probeResults.set('main-0', { readiness: 'success' });
    w.settle();
    assert.equal(condition(w, 'ContainersReady')?.status, 'True');
    assert.equal(condition(w, 'Ready')?.reason, 'ReadinessGatesNotReady');
    for (const status of ['True', 'False', 'True']) {
      w.pod = { ...w.pod, status: { conditions: [{ type: 'example.com/gate', status }] } };
      w.settle();
      assert.equal(condition(w, 'Ready')?.status, status);
      assert.equal(condition(w, 'example.com/gate')?.status, status);
    }
  });

  it('an unchanged pod condition keeps its transition time', () => {
    const w = world({});
    w.settle();
    const before = condition(w, 'Ready')?.lastTransitionTime;
    w.nowMs += 5000;
    w.settle();
    assert.equal(condition(w, 'Ready')?.lastTransitionTime, before);
  });
});

describe('random event histories', () => {
  /** Small seeded generator (mulberry32). */
  const randomOf = (seed: number) => () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  it('a pod converges in a random history, runs no container twice, keeps the init order and terminates on request', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const random = randomOf(seed);
      const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
      const w = new World({
        restartPolicy: pick(['Always', 'OnFailure', 'Never']),
        containers: [app('a'), app('b')].slice(0, 1 + Math.floor(random() * 2)),
        initContainers: [app('i'), sidecar('s'), app('j')].filter(() => random() < 0.5),
      });
      const check = (): void => {
        const names = w.running();
        assert.equal(new Set(names).size, names.length, `seed ${seed}: ${w.history.join(', ')}`);
        const sandbox = w.sandboxes.at(-1)?.id;
        const begun = w.containers.some((each) => each.sandboxId === sandbox && ['a', 'b'].includes(each.name));
        if (begun) {
          for (const name of ['i', 'j'].filter((each) =>
            w.pod.spec?.initContainers?.some((init) => init.name === each),
          )) {
            assert.ok(
              w.containers.some(
                (each) =>
                  each.name === name && each.sandboxId === sandbox && each.exitCode === 0 && each.state === 'exited',
              ),
              `seed ${seed}: ${name} was not done: ${w.history.join(', ')}`,
            );
          }
        }
      };
      for (let step = 0; step < 25; step += 1) {
        const plan = w.settle();
        check();
        const names = w.running();
        const event = random();
        if (event < 0.6 && names.length > 0) w.exit(pick(names), pick([0, 0, 1]));
        else if (event < 0.7) w.loseSandbox();
        w.nowMs += pick([10, 15_000, 400_000]);
        if (plan.finished) break;
      }
      w.termination = { startedAtMs: w.nowMs, graceSeconds: 5 };
      assert.equal(w.settle().finished, true, `seed ${seed}`);
      assert.deepEqual(w.running(), []);
      assert.ok(w.sandboxes.every((each) => each.state === 'notready'));
      assert.match(w.status.phase ?? '', /^(Succeeded|Failed)$/, `seed ${seed}`);
    }
  });
});

describe('a runtime that has lost its records', () => {
  it('a runtime that has lost its records does not restart a container with restartPolicy Never', () => {
    const w = world({ restartPolicy: 'Never' });
    w.settle();
    w.loseRecords();
    assert.equal(w.settle().finished, true);
    assert.deepEqual(w.history, ['sandbox#0', 'start main#0']);
    assert.equal(w.status.phase, 'Failed');
    assert.equal(w.status.containerStatuses?.[0]?.restartCount, 0);
  });

  it('a runtime that has lost its records does not restart an init container with restartPolicy Never, and the pod fails', () => {
    const w = world({ restartPolicy: 'Never', initContainers: [app('one'), app('two')] });
    w.settle();
    w.exit('one', 0);
    w.report(w.plan());
    w.loseRecords();
    assert.equal(w.settle().finished, true);
    assert.deepEqual(w.history, ['sandbox#0', 'start one#0']);
    assert.equal(w.status.phase, 'Failed');
  });

  it('restarts a failed container and not a completed container with restartPolicy OnFailure', () => {
    const w = world({ restartPolicy: 'OnFailure', containers: [app('done'), app('main')] });
    w.settle();
    w.exit('done', 0);
    w.settle();
    w.loseRecords();
    w.settle();
    assert.deepEqual(w.history, ['sandbox#0', 'start done#0', 'start main#0', 'sandbox#0', 'start main#0']);
    assert.equal(w.status.phase, 'Running');
    assert.equal(w.status.containerStatuses?.[0]?.state?.terminated?.exitCode, 0);
  });
});
