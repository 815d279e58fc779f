/** Life cycle of machines: each plan contains one step for a snapshot. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Pod } from '../../../../src/api/generated/core/v1.ts';
import {
  FORGOTTEN_MS,
  planHost,
  refusalToClaim,
  SILENT_MS,
} from '../../../../src/openshift/machines/core/bare-metal-host.ts';
import { type MachineSnapshot, MOST_ATTEMPTS, planMachine } from '../../../../src/openshift/machines/core/machine.ts';
import { quorumRefusal, type StoreMember } from '../../../../src/openshift/machines/core/quorum.ts';
import type {
  BareMetalHost,
  Machine,
  MachineCondition,
} from '../../../../src/openshift/machines/kinds/machine-types.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const at = (ms: number): string => new Date(NOW + ms).toISOString();

const machineOf = (change: Partial<Machine> = {}): Machine => ({
  metadata: { name: 'm', namespace: 'x', uid: 'u' },
  spec: { providerSpec: { value: { roles: ['node'] } } },
  ...change,
});

function hostOf(
  change: { readonly reported?: string; readonly state?: string; readonly seenMs?: number } = {},
): BareMetalHost {
  const { reported = 'blank', state = 'available', seenMs = 0 } = change;
  return {
    metadata: {
      name: 'h',
      namespace: 'x',
      annotations: { 'machine.hyperedge.dev/offer-key': 'k', 'machine.hyperedge.dev/reported': reported },
    },
    spec: { online: true },
    status: { provisioning: { state: state as 'available' }, lastUpdated: at(seenMs) },
  };
}

const readyNode = (change: Partial<Node> = {}): Node => ({
  metadata: { name: 'h', uid: 'n' },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
  ...change,
});

const snapshot = (change: Partial<MachineSnapshot> = {}): MachineSnapshot => ({
  machine: machineOf(),
  hosts: [],
  host: undefined,
  node: undefined,
  pods: [],
  members: undefined,
  failure: undefined,
  ...change,
});

const condition = (conditions: readonly MachineCondition[] | undefined, type: string) =>
  conditions?.find((each) => each.type === type);

test('a Machine claims a free host, or reports why no host is available', () => {
  const free = hostOf();
  const plan = planMachine(snapshot({ hosts: [free] }), NOW);
  assert.deepEqual(plan.step, { do: 'claim', host: free });
  const busy = { ...hostOf(), spec: { online: true, consumerRef: { name: 'other' } } };
  const offline = { ...hostOf(), spec: { online: false } };
  const none = planMachine(snapshot({ hosts: [busy, offline, hostOf({ seenMs: -SILENT_MS - 1 })] }), NOW);
  assert.equal(none.step, undefined);
  assert.equal(none.status.phase, 'Provisioning');
  assert.equal(
    condition(none.status.conditions, 'InstanceExists')?.message,
    'No host to claim of 3 hosts: 1 claimed, 1 not online, 1 silent',
  );
});

test('derives the phase of a Machine from its host and its Node', () => {
  const host = hostOf();
  const offered = planMachine(snapshot({ host }), NOW);
  assert.deepEqual([offered.status.phase, offered.step?.do], ['Provisioning', 'provision']);
  const joined = planMachine(snapshot({ host: hostOf({ reported: 'joined' }) }), NOW);
  assert.deepEqual([joined.status.phase, joined.step], ['Provisioned', undefined]);
  const node = readyNode();
  const running = planMachine(snapshot({ host, node }), NOW);
  assert.deepEqual([running.status.phase, running.step?.do], ['Running', 'link']);
  assert.deepEqual(running.status.nodeRef, { kind: 'Node', name: 'h', uid: 'n' });
});

test('a Machine fails permanently if its host is deleted or cannot be installed', () => {
  const gone = machineOf({ spec: { providerID: 'baremetalhost:///x/h/1' } });
  const plan = planMachine(snapshot({ machine: gone }), NOW);
  assert.deepEqual([plan.status.phase, plan.status.errorReason], ['Failed', 'UpdateError']);
  const host: BareMetalHost = { metadata: { name: 'h' }, spec: { bmc: { address: 'ssh://10.0.0.7' } } };
  const tried = (attempts: number, retryAtMs = NOW) =>
    planMachine(snapshot({ host, failure: { attempts, message: 'ssh: no route', retryAtMs } }), NOW);
  const waiting = tried(1, NOW + 7_000);
  assert.deepEqual([waiting.status.phase, waiting.step, waiting.againMs], ['Provisioning', undefined, 7_000]);
  const creation = waiting.status.conditions?.find(({ type }) => type === 'MachineCreation');
  assert.deepEqual(
    [creation?.status, creation?.reason, creation?.message],
    ['False', 'MachineCreationFailed', 'ssh: no route'],
  );
  const status = { ...waiting.status, phase: 'Provisioned' as const };
  const installed = planMachine(snapshot({ host, machine: machineOf({ status }) }), NOW);
  assert.equal(installed.status.conditions?.find(({ type }) => type === 'MachineCreation')?.status, 'True');
  assert.equal(tried(MOST_ATTEMPTS - 1).step?.do, 'provision');
  const failed = tried(MOST_ATTEMPTS);
  assert.deepEqual(
    [failed.status.phase, failed.status.errorMessage, failed.step],
    ['Failed', 'ssh: no route', undefined],
  );
  const later = planMachine(snapshot({ host, machine: machineOf({ status: failed.status }) }), NOW);
  assert.deepEqual([later.status.phase, later.step], ['Failed', undefined]);
});

test('releases a host without a wipe if it does not respond over SSH after several attempts', () => {
  const metadata = { name: 'm', namespace: 'x', uid: 'u', deletionTimestamp: at(0) };
  const host: BareMetalHost = { metadata: { name: 'h' }, spec: { bmc: { address: 'ssh://10.0.0.7' } } };
  const step = (attempts: number, retryAtMs = NOW) => {
    const failure = { attempts, message: 'ssh: no route', retryAtMs };
    return planMachine(snapshot({ host, machine: machineOf({ metadata }), failure }), NOW).step?.do;
  };
  assert.equal(step(1), 'wipe');
  assert.equal(step(1, NOW + 5_000), undefined);
  assert.equal(step(MOST_ATTEMPTS), 'release');
});

const pod = (name: string, change: Partial<Pod> = {}): Pod => ({ metadata: { name, namespace: 'd' }, ...change });

test('deletes a Machine in the order cordon, evict, wipe, Node, release, finalizer, one observed step at a time', () => {
  const metadata = { name: 'm', namespace: 'x', uid: 'u', deletionTimestamp: at(0) };
  const joined = hostOf({ reported: 'joined', state: 'provisioned' });
  const pods = [
    pod('tenant'),
    pod('done', { status: { phase: 'Succeeded' } }),
    pod('mirror', { metadata: { name: 'mirror', annotations: { 'kubernetes.io/config.mirror': 'x' } } }),
    pod('daemon', {
      metadata: {
        name: 'd',
        ownerReferences: [{ apiVersion: 'v1', kind: 'DaemonSet', name: 'd', uid: '1', controller: true }],
      },
    }),
  ];
  let machine = machineOf({ metadata });
  const step = (change: Partial<MachineSnapshot>) => {
    const plan = planMachine(snapshot({ machine, ...change }), NOW);
    machine = { ...machine, status: plan.status };
    assert.equal(plan.status.phase, 'Deleting');
    return plan;
  };
  const cordoned = readyNode({ spec: { unschedulable: true } });
  assert.equal(step({ host: joined, node: readyNode(), pods }).step?.do, 'cordon');
  const evict = step({ host: joined, node: cordoned, pods }).step;
  assert.ok(evict?.do === 'evict');
  assert.deepEqual(
    evict.pods.map((each) => each.metadata?.name),
    ['tenant'],
  );
  assert.equal(condition(machine.status?.conditions, 'Drained')?.status, 'False');
  assert.equal(step({ host: joined, node: cordoned, pods: pods.slice(1) }).step?.do, 'wipe');
  assert.equal(condition(machine.status?.conditions, 'Drained')?.status, 'True');
  const ordered = hostOf({ reported: 'joined', state: 'deprovisioning' });
  assert.equal(step({ host: ordered, node: cordoned }).step, undefined, 'waits for the host');
  const blank = hostOf({ state: 'deprovisioning' });
  assert.equal(step({ host: blank, node: cordoned }).step?.do, 'deleteNode');
  assert.equal(step({ host: blank }).step?.do, 'release');
  assert.equal(step({}).step?.do, 'finalize');
});

test('removes the store member of a dead host, and then releases the host without a wipe', () => {
  const metadata = { name: 'm', namespace: 'x', uid: 'u', deletionTimestamp: at(0) };
  const conditions: MachineCondition[] = [{ type: 'Drained', status: 'True' }];
  const machine = machineOf({ metadata, status: { conditions } });
  const host = hostOf({ reported: 'joined', state: 'deprovisioning', seenMs: -SILENT_MS - 1 });
  const members = ['h', 'b', 'c'].map((name) => ({ name, voter: true, healthy: name !== 'h' }));
  const first = planMachine(snapshot({ machine, host, node: readyNode(), members }), NOW);
  assert.deepEqual(first.step, { do: 'removeMember', name: 'h' });
  const then = planMachine(snapshot({ machine, host, members: members.slice(1) }), NOW);
  assert.equal(then.step?.do, 'release');
  // The host keeps its wipe instruction, and no machine may claim it before it is wiped.
  const kept = planHost(host, undefined, undefined, NOW);
  assert.equal(kept.status.provisioning?.state, 'deprovisioning');
  assert.equal(kept.status.errorType, 'provisioning error');
});

test('the deletion of a Machine waits for lifecycle hooks and for the quorum of the store', () => {
  const metadata = { name: 'm', namespace: 'x', uid: 'u', deletionTimestamp: at(0) };
  const hook = [{ name: 'example.com/Backup', owner: 'backup' }];
  const host = hostOf({ reported: 'joined', state: 'provisioned' });
  const node = readyNode({ spec: { unschedulable: true } });
  const before = planMachine(
    snapshot({ machine: machineOf({ metadata, spec: { lifecycleHooks: { preDrain: hook } } }), host, node }),
    NOW,
  );
  assert.equal(before.step, undefined);
  assert.equal(condition(before.status.conditions, 'Drainable')?.reason, 'HookPresent');
  const after = planMachine(
    snapshot({ machine: machineOf({ metadata, spec: { lifecycleHooks: { preTerminate: hook } } }), host, node }),
    NOW,
  );
  assert.equal(after.step, undefined);
  assert.equal(condition(after.status.conditions, 'Drained')?.status, 'True');
  assert.equal(condition(after.status.conditions, 'Terminable')?.reason, 'HookPresent');
  for (const members of ['unknown', [{ name: 'h', voter: true, healthy: true }]] as const) {
    const refused = planMachine(snapshot({ machine: machineOf({ metadata }), host, node, members }), NOW);
    assert.equal(refused.step, undefined);
    assert.equal(condition(refused.status.conditions, 'Drainable')?.reason, 'WouldLoseQuorum');
  }
});

test('allows the removal of a store member only if the members have a quorum before and after it', () => {
  for (let voters = 1; voters <= 7; voters += 1)
    for (let mask = 0; mask < 1 << voters; mask += 1) {
      const members: StoreMember[] = Array.from({ length: voters }, (_, index) => ({
        name: `m${index}`,
        voter: true,
        healthy: (mask & (1 << index)) !== 0,
      }));
      const healthy = members.filter((each) => each.healthy).length;
      const rest = healthy - (members[0]?.healthy === true ? 1 : 0);
      const allowed = voters > 1 && rest * 2 > voters - 1 && healthy * 2 > voters;
      assert.equal(quorumRefusal(members, 'm0') === undefined, allowed, JSON.stringify(members));
    }
  assert.equal(quorumRefusal([{ name: 'l', voter: false, healthy: true }], 'l'), undefined);
});

test('deletes an offered host that was never approved, and makes a wiped host available again', () => {
  const unapproved = (seenMs: number): BareMetalHost => ({ ...hostOf({ seenMs }), spec: { online: false } });
  assert.equal(planHost(unapproved(0), undefined, undefined, NOW).forget, false);
  const silent = planHost(unapproved(-SILENT_MS - 1), undefined, undefined, NOW);
  assert.deepEqual([silent.forget, silent.status.operationalStatus], [false, 'detached']);
  assert.equal(planHost(unapproved(-FORGOTTEN_MS - 1), undefined, undefined, NOW).forget, true);
  assert.equal(planHost(hostOf({ seenMs: -FORGOTTEN_MS - 1 }), undefined, undefined, NOW).forget, false);
  const wiped = planHost(hostOf({ state: 'deprovisioning' }), undefined, undefined, NOW);
  assert.equal(wiped.status.provisioning?.state, 'available');
  // The first report is written after the object.
  const { lastUpdated: _none, ...status } = unapproved(0).status ?? {};
  const fresh = { ...unapproved(0), status };
  fresh.metadata = { ...fresh.metadata, creationTimestamp: at(-1000) };
  assert.equal(planHost(fresh, undefined, undefined, NOW).forget, false);
  assert.equal(refusalToClaim(unapproved(0), undefined, NOW), 'not online');
});
