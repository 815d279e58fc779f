/** A rule that restarts all containers of a pod in its sandbox (KEP-5532). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { World } from './world.ts';

const rules = [
  { action: 'Restart', exitCodes: { operator: 'In', values: [41] } },
  { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } },
];

const spec = (main: object = {}): Pod['spec'] =>
  ({
    restartPolicy: 'Never',
    initContainers: [
      { name: 'init', image: 'i' },
      { name: 'sidecar', image: 'i', restartPolicy: 'Always' },
    ],
    containers: [
      { name: 'main', image: 'i', restartPolicy: 'Never', restartPolicyRules: rules, ...main },
      { name: 'other', image: 'i' },
    ],
  }) as unknown as Pod['spec'];

function started(main?: object): World {
  const world = new World(spec(main));
  world.settle();
  world.nowMs += 1_000;
  world.exit('init', 0);
  world.settle();
  assert.deepEqual(world.running().sort(), ['main', 'other', 'sidecar']);
  world.history.length = 0;
  world.nowMs += 60_000;
  return world;
}

const condition = (world: World) => world.status.conditions?.find(({ type }) => type === 'AllContainersRestarting');

describe('an exit code that restarts all containers', () => {
  it('an exit code that restarts all containers stops the other containers and restarts from the init containers', () => {
    const world = started();
    world.exit('main', 42);
    world.settle();
    assert.deepEqual(world.history.slice(0, 3).sort(), ['kill other', 'kill sidecar', 'start init#1']);
    assert.equal(world.history[2], 'start init#1');
    assert.equal(world.status.phase, 'Running');
    assert.equal(condition(world)?.status, 'True');
    world.nowMs += 1_000;
    world.exit('init', 0);
    world.settle();
    assert.deepEqual(world.running().sort(), ['main', 'other', 'sidecar']);
    assert.deepEqual(
      world.history.filter((each) => each.includes('sandbox')),
      [],
    );
    assert.equal(world.status.phase, 'Running');
    assert.equal(condition(world)?.status, 'False');
    assert.equal(world.latest('other').attempt, 1);
  });

  it('triggers one restart; later exits follow the restart rules of their containers', () => {
    const world = started();
    world.exit('main', 42);
    world.settle();
    world.nowMs += 1_000;
    world.exit('init', 0);
    world.settle();
    world.history.length = 0;
    world.nowMs += 60_000;
    world.exit('other', 0);
    world.settle();
    assert.deepEqual(world.history, []);
    world.exit('main', 41);
    world.nowMs += 300_000;
    world.settle();
    assert.deepEqual(world.history, ['start main#2']);
    world.nowMs += 600_000;
    world.exit('main', 1);
    world.settle();
    assert.equal(world.status.phase, 'Failed');
  });

  it('triggers one restart even if a stopped container also exits with a restarting exit code', () => {
    const world = started({
      restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'NotIn', values: [0] } }],
    });
    world.exit('main', 1);
    world.settle();
    world.nowMs += 1_000;
    world.exit('init', 0);
    world.settle();
    assert.deepEqual(world.running().sort(), ['main', 'other', 'sidecar']);
    assert.equal(world.latest('main').attempt, 1);
  });

  it('an exit code that restarts all containers has no effect while the pod terminates', () => {
    const world = started();
    world.exit('main', 42);
    world.termination = { startedAtMs: world.nowMs, graceSeconds: 1 };
    world.settle();
    assert.equal(world.history.filter((each) => each.startsWith('start')).length, 0);
    assert.deepEqual(world.running(), []);
  });
});
