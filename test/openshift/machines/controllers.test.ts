/** Machines, machine sets and health checks on a real API server. Hosts and the store are simulated. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import {
  type BareMetalHost,
  MACHINE_NAMESPACE,
  type Machine,
  type MachineSet,
  type MachineSpec,
  OFFER_ANNOTATION,
  REPORTED_ANNOTATION,
  SEALING_ANNOTATION,
} from '../../../src/openshift/machines/kinds/machine-types.ts';
import type { MachineProvisioner, StoreMemberState } from '../../../src/openshift/machines/machines-port.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../controllers/harness.ts';

const namespace = MACHINE_NAMESPACE;
const providerOf = (site: string): MachineSpec => ({
  providerSpec: { value: { hostSelector: { matchLabels: { site } } } },
});

describe('machines', () => {
  let plane: ControlPlane;
  const calls: string[] = [];
  let members: StoreMemberState[] = [];
  let installs: 'work' | 'fail' = 'work';
  const provisioner: MachineProvisioner = {
    seal: async ({ roles, nodeName }, key) => {
      calls.push(`seal ${nodeName} ${roles.join('+')} ${key}`);
      return { sealed: 'c2VhbGVk', tokenId: 'abcdef', expires: new Date(Date.now() + 3_600_000).toISOString() };
    },
    revoke: async (id) => void calls.push(`revoke ${id}`),
    inspect: async ({ address }) => {
      if (address.host === '10.0.0.9') throw new Error('ssh://root@10.0.0.9:22: Host key verification failed.');
      return { ramMebibytes: 2048, cpu: { arch: 'x86_64', count: 4 } };
    },
    install: async ({ address, hostKey }, { nodeName }) => {
      calls.push(`install ${nodeName} ${address.user}@${address.host} ${hostKey.split(' ')[0]}`);
      if (installs === 'fail') throw new Error('ssh: no space left');
    },
    reset: async ({ address }, purge) => void calls.push(`reset ${address.host} ${purge}`),
    members: async () => members,
    removeMember: async (name) => void calls.push(`remove ${name}`),
  };
  before(async () => {
    plane = await startControlPlane({ machines: provisioner });
    await plane.of(resources.secrets).create({
      metadata: { name: 'rack', namespace },
      stringData: { 'ssh-privatekey': 'KEY', 'ssh-hostkey': 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== root@rack' },
    });
  });
  after(() => plane.stop());

  const hosts = () => plane.of(resources.bareMetalHosts);
  const machines = () => plane.of(resources.machines);

  const addSshHost = (name: string, site: string, address = 'ssh://root@10.0.0.7'): Promise<BareMetalHost> =>
    hosts().create({
      metadata: { name, namespace, labels: { site } },
      spec: { online: true, bmc: { address, credentialsName: 'rack' } },
    });
  const addSet = (name: string, replicas: number, spec: MachineSpec): Promise<MachineSet> =>
    plane.of(resources.machineSets).create({
      metadata: { name, namespace },
      spec: {
        replicas,
        selector: { matchLabels: { set: name } },
        template: { metadata: { labels: { set: name } }, spec },
      },
    });
  const machinesOf = async (set: string): Promise<Machine[]> =>
    (await machines().list({ namespace, labelSelector: `set=${set}` })).items;
  const untilMachine = (set: string, what: string, check: (machine: Machine) => boolean): Promise<Machine> =>
    eventually(async () => {
      const [machine] = await machinesOf(set);
      assert.ok(machine !== undefined && check(machine), JSON.stringify(machine?.status));
      return machine;
    }, what);
  const untilState = (name: string, state: string): Promise<BareMetalHost> =>
    eventually(async () => {
      const host = await hosts().get(name, namespace);
      assert.equal(host.status?.provisioning?.state, state, JSON.stringify(host));
      return host;
    }, `${name} ${state}`);
  const condition = (machine: Machine, type: string) => machine.status?.conditions?.find((each) => each.type === type);

  it('installs the host of a Machine over SSH, links its Node, and drains and wipes the host on deletion', async () => {
    await addSshHost('ssh-1', 'ssh');
    const host = await untilState('ssh-1', 'available');
    assert.equal(host.status?.hardware?.cpu?.count, 4);
    await addSet('ssh', 1, providerOf('ssh'));
    const provisioned = await untilMachine('ssh', 'installed', ({ status }) => status?.phase === 'Provisioned');
    assert.ok(calls.includes('install ssh-1 root@10.0.0.7 ssh-ed25519'));
    assert.match(provisioned.spec?.providerID ?? '', /^baremetalhost:\/\/\/openshift-machine-api\/ssh-1\//);
    await plane.addNode('ssh-1');
    const running = await untilMachine('ssh', 'Running', ({ status }) => status?.phase === 'Running');
    assert.equal(running.status?.nodeRef?.name, 'ssh-1');
    await eventually(async () => {
      const node: Node = await plane.of(resources.nodes).get('ssh-1');
      assert.equal(
        node.metadata?.annotations?.['machine.openshift.io/machine'],
        `${namespace}/${running.metadata?.name}`,
      );
      const set = await plane.of(resources.machineSets).get('ssh', namespace);
      assert.equal(set.status?.availableReplicas, 1);
      return true;
    }, 'linked and counted');
    await plane.of(resources.pods).create({
      metadata: { name: 'tenant', namespace: 'default' },
      spec: { nodeName: 'ssh-1', containers: [{ name: 'c', image: 'x' }] },
    });
    await plane.of(resources.machineSets).patch('ssh', namespace, 'merge', { spec: { replicas: 0 } });
    await eventually(
      async () => {
        assert.deepEqual(await machinesOf('ssh'), []);
        return true;
      },
      'machine is deleted',
      20_000,
    );
    assert.ok(calls.includes('reset 10.0.0.7 true'));
    await assert.rejects(plane.of(resources.pods).get('tenant', 'default'), /not found/);
    await assert.rejects(plane.of(resources.nodes).get('ssh-1'), /not found/);
    const free = await untilState('ssh-1', 'available');
    assert.equal(free.spec?.consumerRef, undefined);
    assert.deepEqual(free.metadata?.finalizers ?? [], []);
  });

  it('does not release a host whose last report is older than its wipe order', async () => {
    const annotations = { [OFFER_ANNOTATION]: 'key', [SEALING_ANNOTATION]: 'seal', [REPORTED_ANNOTATION]: 'blank' };
    await hosts().create({
      metadata: { name: 'offer-1', namespace, labels: { site: 'offer' }, annotations },
      spec: { online: true },
    });
    await untilState('offer-1', 'available');
    await addSet('offer', 1, providerOf('offer'));
    await eventually(async () => calls.includes('seal offer-1 node seal'), 'sealed');
    // The host has joined, but has not reported this yet.
    await plane.addNode('offer-1');
    await untilMachine('offer', 'Running', ({ status }) => status?.phase === 'Running');
    await plane.of(resources.machineSets).patch('offer', namespace, 'merge', { spec: { replicas: 0 } });
    await untilState('offer-1', 'deprovisioning');
    const report = (state: string) =>
      hosts().patch('offer-1', namespace, 'merge', { metadata: { annotations: { [REPORTED_ANNOTATION]: state } } });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await report('joined');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const ordered = await untilState('offer-1', 'deprovisioning');
    assert.notEqual(ordered.spec?.consumerRef, undefined);
    assert.equal((await machinesOf('offer')).length, 1);
    await report('blank');
    const free = await untilState('offer-1', 'available');
    assert.equal(free.spec?.consumerRef, undefined);
  });

  it('reports a host with another SSH host key than the pinned one, and no Machine claims the host', async () => {
    await addSshHost('ssh-9', 'other', 'ssh://root@10.0.0.9');
    await eventually(async () => {
      const { status } = await hosts().get('ssh-9', namespace);
      assert.equal(status?.errorType, 'registration error');
      assert.match(status?.errorMessage ?? '', /Host key verification failed/);
      return true;
    }, 'error');
    await addSet('other', 1, providerOf('other'));
    const machine = await untilMachine('other', 'waiting', ({ status }) => status?.phase === 'Provisioning');
    assert.match(condition(machine, 'InstanceExists')?.message ?? '', /1 in error/);
  });

  it('lifecycle hooks and a possible loss of the store quorum block the deletion of a Machine', async () => {
    await addSshHost('ssh-2', 'master');
    await untilState('ssh-2', 'available');
    members = ['ssh-2', 'b', 'c'].map((name) => ({ name, voter: true, healthy: name !== 'c' }));
    await addSet('master', 1, {
      lifecycleHooks: { preDrain: [{ name: 'example.com/Backup', owner: 'backup' }] },
      providerSpec: {
        value: { roles: ['master', 'etcd', 'node'], hostSelector: { matchLabels: { site: 'master' } } },
      },
    });
    await untilMachine('master', 'installed', ({ status }) => status?.phase === 'Provisioned');
    await plane.addNode('ssh-2');
    const { metadata } = await untilMachine('master', 'Running', ({ status }) => status?.phase === 'Running');
    const name = metadata?.name ?? '';
    await machines().delete(name, namespace);
    const untilNamed = (what: string, check: (machine: Machine) => boolean): Promise<Machine> =>
      eventually(async () => {
        const machine = await machines().get(name, namespace);
        assert.ok(check(machine), JSON.stringify(machine.status));
        return machine;
      }, what);
    const held = await untilNamed('held', ({ status }) => status?.phase === 'Deleting');
    assert.match(
      condition(held, 'Drainable')?.message ?? '',
      /blocked by: \[\{Name:example.com\/Backup Owner:backup\}\]/,
    );
    await machines().patch(name, namespace, 'merge', { spec: { lifecycleHooks: null } });
    const refused = await untilNamed('refused', (each) => condition(each, 'Drainable')?.reason === 'WouldLoseQuorum');
    assert.match(condition(refused, 'Drainable')?.message ?? '', /1 of the 2 other members are healthy, 2 are needed/);
    const node = await plane.of(resources.nodes).get('ssh-2');
    assert.notEqual(node.spec?.unschedulable, true);
    assert.ok(!calls.includes('remove ssh-2'));
    members = members.map((each) => ({ ...each, healthy: true }));
    await plane.of(resources.machineSets).delete('master', namespace);
    await eventually(async () => calls.includes('remove ssh-2'), 'member is removed', 15_000);
    members = members.filter((each) => each.name !== 'ssh-2');
    await eventually(async () => (await machinesOf('master')).length === 0, 'machine is deleted', 20_000);
  });

  it('a Machine fails after several installation attempts, and a MachineHealthCheck replaces it', async () => {
    installs = 'fail';
    await addSshHost('ssh-3', 'bad');
    await untilState('ssh-3', 'available');
    await addSet('bad', 1, providerOf('bad'));
    await eventually(async () => calls.filter((call) => call.startsWith('install ssh-3')).length >= 1, 'attempt');
    const [first] = await machinesOf('bad');
    await machines().patch(
      first?.metadata?.name ?? '',
      namespace,
      'merge',
      { status: { phase: 'Failed', errorReason: 'CreateError', errorMessage: 'ssh: no space left' } },
      { subresource: 'status' },
    );
    installs = 'work';
    await plane.of(resources.machineHealthChecks).create({
      metadata: { name: 'bad', namespace },
      spec: {
        selector: { matchLabels: { set: 'bad' } },
        unhealthyConditions: [{ type: 'Ready', status: 'False', timeout: '5m' }],
      },
    });
    await eventually(
      async () => {
        const [machine] = await machinesOf('bad');
        assert.notEqual(machine?.metadata?.uid, first?.metadata?.uid);
        assert.equal(machine?.status?.phase, 'Provisioned', JSON.stringify(machine?.status));
        return true;
      },
      'replacement',
      30_000,
    );
    const check = await plane.of(resources.machineHealthChecks).get('bad', namespace);
    assert.equal(check.status?.conditions?.[0]?.type, 'RemediationAllowed');
  });
});
