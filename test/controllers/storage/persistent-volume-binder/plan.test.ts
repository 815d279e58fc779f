/** Executes the writes of binder plans on a store in memory. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../../../src/api/generated/core/v1.ts';
import type { StorageClass } from '../../../../src/api/generated/storage/v1.ts';
import { defaultClassOf } from '../../../../src/api/volumes/binding.ts';
import {
  type BinderPlan,
  planClaim,
  planVolume,
} from '../../../../src/controllers/storage/persistent-volume-binder/plan.ts';
import { seeded } from '../../objects.ts';

const claim = (name: string, size = '1Gi', spec: object = {}, metadata: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { name, namespace: 'n', uid: `claim-${name}`, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: size } }, storageClassName: '', ...spec },
    status: { phase: 'Pending' },
  }) as PersistentVolumeClaim;
const volume = (name: string, size = '1Gi', spec: object = {}, metadata: object = {}): PersistentVolume =>
  ({
    metadata: { name, uid: `volume-${name}`, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: size }, storageClassName: '', ...spec },
    status: { phase: 'Pending' },
  }) as PersistentVolume;
const storageClass = (name: string, more: object = {}): StorageClass =>
  ({ metadata: { name }, provisioner: 'example.com/disks', volumeBindingMode: 'Immediate', ...more }) as StorageClass;

class World {
  readonly claims = new Map<string, PersistentVolumeClaim>();
  readonly volumes = new Map<string, PersistentVolume>();
  readonly classes = new Map<string, StorageClass>();
  readonly events: string[] = [];
  pods: Pod[] = [];

  constructor(...objects: (PersistentVolume | PersistentVolumeClaim)[]) {
    for (const object of objects) this.put(object);
  }

  put(object: PersistentVolume | PersistentVolumeClaim): void {
    const name = object.metadata?.name ?? '';
    if (object.metadata?.namespace === undefined) this.volumes.set(name, object as PersistentVolume);
    else this.claims.set(name, object as PersistentVolumeClaim);
  }

  /**
   * Performs one write of one object, as after a crash or with an outdated cache. Returns whether something was
   * written.
   */
  step(name: string): boolean {
    const plan = this.#plan(name);
    if (plan?.event !== undefined) this.events.push(`${plan.event.reason}: ${plan.event.message}`);
    if (plan?.step !== undefined) this.put(plan.step.object);
    return plan?.step !== undefined;
  }

  settle(): void {
    const names = () => [...this.volumes.keys(), ...this.claims.keys()];
    for (let round = 0; round < 50; round++) if (names().filter((name) => this.step(name)).length === 0) return;
    assert.fail('the plans do not settle');
  }

  phases(): string {
    const all = [...this.claims.values(), ...this.volumes.values()];
    return all.map(({ metadata, status }) => `${metadata?.name}=${status?.phase}`).join(' ');
  }

  #plan(name: string): BinderPlan | undefined {
    const pv = this.volumes.get(name);
    if (pv !== undefined) return planVolume(pv, this.claims.get(pv.spec?.claimRef?.name ?? ''));
    const pvc = this.claims.get(name);
    if (pvc === undefined) return undefined;
    return planClaim(pvc, {
      volumes: [...this.volumes.values()],
      volume: (each) => this.volumes.get(each),
      storageClass: (each) => this.classes.get(each),
      defaultClass: defaultClassOf([...this.classes.values()]),
      pods: this.pods,
    });
  }
}

describe('persistent volume binder', () => {
  it("binds the smallest matching volume, with upstream's annotations, phases and capacity", () => {
    const world = new World(
      claim('c', '2Gi'),
      volume('small', '1Gi'),
      volume('large', '9Gi'),
      volume('fits', '3Gi'),
      volume('class', '2Gi', { storageClassName: 'other' }),
      volume('mode', '2Gi', { volumeMode: 'Block' }),
      volume('access', '2Gi', { accessModes: ['ReadOnlyMany'] }),
      volume('going', '2Gi', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    );
    world.settle();
    const bound = world.claims.get('c');
    assert.equal(bound?.spec?.volumeName, 'fits');
    assert.deepEqual(bound?.metadata?.annotations, {
      'pv.kubernetes.io/bind-completed': 'yes',
      'pv.kubernetes.io/bound-by-controller': 'yes',
    });
    assert.deepEqual(bound?.status, { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '3Gi' } });
    assert.equal(world.volumes.get('fits')?.spec?.claimRef?.uid, 'claim-c');
    assert.match(world.phases(), /c=Bound small=Available large=Available fits=Bound/);
  });

  it('respects selectors, reservations and volumes that the claim specifies', () => {
    const world = new World(
      claim('chosen', '1Gi', { selector: { matchLabels: { tier: 'fast' } } }),
      claim('reserved'),
      claim('named', '1Gi', { volumeName: 'd' }),
      claim('wrong', '5Gi', { volumeName: 'e' }),
      volume('a', '1Gi'),
      volume('b', '4Gi', {}, { labels: { tier: 'fast' } }),
      volume('c', '8Gi', { claimRef: { namespace: 'n', name: 'reserved' } }),
      volume('d', '8Gi'),
      volume('e', '2Gi', { storageClassName: 'apart' }),
    );
    world.settle();
    const got = [...world.claims.values()].map(({ spec, status }) => `${spec?.volumeName}:${status?.phase}`);
    assert.deepEqual(got, ['b:Bound', 'c:Bound', 'd:Bound', 'e:Pending']);
    assert.equal(world.volumes.get('c')?.metadata?.annotations, undefined);
    assert.match(
      world.events.join('\n'),
      /VolumeMismatch: Cannot bind to requested volume "e": requested PV is too small/,
    );
  });

  it('reports a claim that waits for its pod with events, then requests a volume from the provisioner of its class', () => {
    const world = new World(
      claim('c', '1Gi', { storageClassName: 'late' }),
      volume('v', '1Gi', { storageClassName: 'late' }),
    );
    world.classes.set('late', storageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' }));
    world.settle();
    world.pods = [{ metadata: { name: 'p' } } as Pod];
    world.settle();
    assert.deepEqual(world.events.slice(-1), ['WaitForPodScheduled: waiting for pod p to be scheduled']);
    assert.equal(world.events[0], 'WaitForFirstConsumer: waiting for first consumer to be created before binding');
    const waiting = world.claims.get('c');
    assert.equal(waiting?.spec?.volumeName, undefined);
    world.put({
      ...waiting,
      metadata: { ...waiting?.metadata, annotations: { 'volume.kubernetes.io/selected-node': 'a' } },
    });
    world.settle();
    assert.equal(
      world.claims.get('c')?.metadata?.annotations?.['volume.kubernetes.io/storage-provisioner'],
      'example.com/disks',
    );
    assert.match(world.events.at(-1) ?? '', /^ExternalProvisioning: Waiting for a volume to be created/);
  });

  it('uses the newest default class for a claim without a class, and reports a missing class', () => {
    const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    const world = new World(
      claim('c', '1Gi', { storageClassName: undefined }),
      claim('d', '1Gi', { storageClassName: 'x' }),
      claim('e'),
    );
    const at = (name: string, creationTimestamp: string) =>
      storageClass(name, { metadata: { name, creationTimestamp, annotations: isDefault } });
    world.classes.set('old', at('old', '2026-01-01T00:00:00Z'));
    world.classes.set('new', at('new', '2026-02-01T00:00:00Z'));
    world.settle();
    assert.equal(world.claims.get('c')?.spec?.storageClassName, 'new');
    assert.match(world.events.join('\n'), /ProvisioningFailed: storageclass.storage.k8s.io "x" not found/);
    assert.match(
      world.events.join('\n'),
      /FailedBinding: no persistent volumes available for this claim and no storage/,
    );
  });

  it('marks claims without their volume as lost and releases volumes without their claim', () => {
    const world = new World(
      claim('c'),
      claim('d'),
      volume('v'),
      volume('w', '1Gi', { persistentVolumeReclaimPolicy: 'Delete' }),
    );
    world.settle();
    const [lost, other] = world.claims.get('c')?.spec?.volumeName === 'v' ? ['v', 'w'] : ['w', 'v'];
    world.volumes.delete(lost);
    world.claims.delete('d');
    world.settle();
    assert.equal(world.claims.get('c')?.status?.phase, 'Lost');
    assert.match(
      world.events.join('\n'),
      /ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!/,
    );
    assert.equal(world.volumes.get(other)?.status?.phase, other === 'v' ? 'Released' : 'Failed');
    // A new claim of the same name does not get the data of the old one.
    world.put(claim('d', '1Gi', {}, { uid: 'another' }));
    world.settle();
    assert.equal(world.claims.get('d')?.status?.phase, 'Pending');
  });

  it('persistent volume binder never binds one volume to two claims, in any order of events and writes', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = seeded(seed);
      const pick = (count: number): number => Math.floor(random() * count);
      const world = new World();
      for (let turn = 0; turn < 60; turn++) {
        const name = `${pick(4)}`;
        const act = pick(8);
        if (act === 0 && !world.claims.has(`c${name}`)) {
          world.put(
            claim(`c${name}`, `${1 + pick(3)}Gi`, random() < 0.3 ? { volumeName: `v${pick(4)}` } : {}, {
              uid: `u${turn}`,
            }),
          );
        } else if (act === 1 && !world.volumes.has(`v${name}`))
          world.put(volume(`v${name}`, `${1 + pick(3)}Gi`, {}, { uid: `u${turn}` }));
        else if (act === 2 && random() < 0.3) world.claims.delete(`c${name}`);
        else world.step(random() < 0.5 ? `c${name}` : `v${name}`);
      }
      world.settle();
      const bound = [...world.claims.values()].filter(({ status }) => status?.phase === 'Bound');
      assert.equal(new Set(bound.map(({ spec }) => spec?.volumeName)).size, bound.length, `seed ${seed}`);
      for (const each of bound) {
        const pv = world.volumes.get(each.spec?.volumeName ?? '');
        assert.equal(pv?.spec?.claimRef?.uid, each.metadata?.uid, `seed ${seed}`);
        assert.equal(pv?.status?.phase, 'Bound', `seed ${seed}`);
      }
      const isFree = (pv: PersistentVolume) => pv.status?.phase === 'Available' && pv.spec?.claimRef === undefined;
      for (const each of world.claims.values()) {
        if ((each.spec?.volumeName ?? '') !== '') continue;
        const wanted = Number.parseInt(each.spec?.resources?.requests?.['storage'] ?? '', 10);
        const fits = [...world.volumes.values()].some(
          (pv) => isFree(pv) && Number.parseInt(pv.spec?.capacity?.['storage'] ?? '', 10) >= wanted,
        );
        assert.equal(fits, false, `seed ${seed}: ${each.metadata?.name} is unbound beside a free volume`);
      }
    }
  });
});
