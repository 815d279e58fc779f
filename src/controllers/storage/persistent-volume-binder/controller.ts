/** Binds claims to volumes. Plan in controllers/storage/persistent-volume-binder. */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import { type KubeObject, objectKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { defaultClassOf } from '../../../api/volumes/binding.ts';
import { claimNames } from '../../../api/volumes/pod-claims.ts';
import type { ResourceClient } from '../../../client/types.ts';
import { candidateWaker } from '../../framework/candidates.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { indexByClaim, podsWithClaim } from '../../framework/owner-indices.ts';
import { type BinderPlan, type BinderStep, planClaim, planVolume } from './plan.ts';

/** Maximum number of writes per sync. A binding takes four writes; if more are needed, another client reverts them. */
const MAX_STEPS = 8;

export const volumeBinderController: ControllerSpec = {
  name: 'persistentvolume-binder',
  eventSource: 'persistentvolume-controller',
  reads: [resources.persistentVolumes, resources.persistentVolumeClaims, resources.storageClasses, resources.pods],
  writes: [resources.persistentVolumes, resources.persistentVolumeClaims],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const volumes = handle.informer(resources.persistentVolumes);
  const claims = handle.informer(resources.persistentVolumeClaims);
  const classes = handle.informer(resources.storageClasses);
  const pods = handle.informer(resources.pods);
  indexByClaim(pods);
  const volumeClient = handle.writer(resources.persistentVolumes);
  const claimClient = handle.writer(resources.persistentVolumeClaims);

  const write = (step: BinderStep): Promise<PersistentVolume | PersistentVolumeClaim> => {
    switch (step.kind) {
      case 'claim':
        return claimClient.update(step.object);
      case 'claimStatus':
        return claimClient.update(step.object, { subresource: 'status' });
      case 'volume':
        return volumeClient.update(step.object);
      case 'volumeStatus':
        return volumeClient.update(step.object, { subresource: 'status' });
    }
  };

  async function syncClaim(key: string): Promise<void> {
    const copies = new Copies();
    const first = claims.get(key);
    if (first === undefined) return;
    // The volume is read live, because a claim whose volume is only missing in the informer must not be marked as lost.
    const name = first.spec?.volumeName ?? '';
    if (name !== '' && volumes.get(name) === undefined) copies.keep(await find(volumeClient, name));
    await carryOut(copies, first, (claim) =>
      planClaim(claim, {
        volumes: volumes.list().map((volume) => copies.newest(volume)),
        volume: (each) => copies.get(each) ?? volumes.get(each),
        storageClass: (each) => classes.get(each),
        defaultClass: defaultClassOf(classes.list()),
        pods: podsWithClaim(pods, key).filter(isUnfinished),
      }),
    );
  }

  async function syncVolume(name: string): Promise<void> {
    const first = volumes.get(name);
    if (first === undefined) return;
    const copies = new Copies();
    await carryOut(
      copies,
      first,
      (volume) => planVolume(volume, copies.claimOf(volume)),
      async (volume) => {
        const { namespace = '', name: claimName = '', uid = '' } = volume.spec?.claimRef ?? {};
        if (uid === '' || copies.claimOf(volume) !== undefined) return;
        const known = claims.get(`${namespace}/${claimName}`);
        // A volume is released only when the API server confirms that its claim is deleted, because released data may
        // be deleted.
        copies.keep(known?.metadata?.uid === uid ? known : await find(claimClient, claimName, namespace));
      },
    );
  }

  /** Performs the planned write and plans again with its result, until no write is left. */
  async function carryOut<T extends PersistentVolume | PersistentVolumeClaim>(
    copies: Copies,
    first: T,
    plan: (object: T) => BinderPlan,
    before?: (object: T) => Promise<void>,
  ): Promise<void> {
    let object = first;
    for (let count = 0; count < MAX_STEPS; count++) {
      await before?.(object);
      const { step, event } = plan(object);
      if (event !== undefined) handle.recorder.event(object, event.type, event.reason, event.message);
      if (step === undefined) return;
      const next = await write(step);
      copies.keep(next);
      if (next.metadata?.uid === object.metadata?.uid) object = next as T;
    }
  }

  return (scope) => {
    // The queue has a single worker, because two claims that are planned concurrently could select the same volume.
    const queue = scope.queue((key) => ignoreNotFound(() => (key.includes('/') ? syncClaim(key) : syncVolume(key))), 1);
    const wakeClaims = candidateWaker(scope, claims, (claim) => queue.add(objectKey(claim)));
    const wakeVolumes = candidateWaker(scope, volumes, (volume) => queue.add(volume.metadata?.name ?? ''));
    const wakeUnbound = (): void => wakeClaims(undefined, (claim) => claim.status?.phase !== 'Bound');
    const wakeSides = (claim: PersistentVolumeClaim): void => {
      queue.add(objectKey(claim));
      const name = claim.spec?.volumeName ?? '';
      if (name !== '') queue.add(name);
    };
    scope.onChange(claims, {
      added: wakeSides,
      updated: wakeSides,
      deleted: (claim) => {
        const key = objectKey(claim);
        wakeVolumes(undefined, (volume) => claimKeyOf(volume) === key);
      },
    });
    const wakeVolume = (volume: PersistentVolume): void => {
      queue.add(volume.metadata?.name ?? '');
      const key = claimKeyOf(volume);
      if (key !== undefined) queue.add(key);
      if (volume.status?.phase === 'Available') wakeUnbound();
    };
    scope.onChange(volumes, {
      added: wakeVolume,
      updated: wakeVolume,
      deleted: (volume) => wakeClaims(undefined, (claim) => claim.spec?.volumeName === volume.metadata?.name),
    });
    scope.onChange(classes, { added: wakeUnbound, updated: wakeUnbound });
    const wakeClaimsOf = (pod: Pod): void => {
      for (const name of claimNames(pod)) {
        const key = `${pod.metadata?.namespace ?? ''}/${name}`;
        if (claims.get(key)?.status?.phase === 'Pending') queue.add(key);
      }
    };
    scope.onChange(pods, { added: wakeClaimsOf });
  };
}

/** Objects of one sync that are newer than the informers' copies. */
class Copies {
  readonly #byUid = new Map<string, PersistentVolume | PersistentVolumeClaim>();

  keep(object: PersistentVolume | PersistentVolumeClaim | undefined): void {
    if (object !== undefined) this.#byUid.set(object.metadata?.uid ?? '', object);
  }

  newest<T extends PersistentVolume | PersistentVolumeClaim>(object: T): T {
    return (this.#byUid.get(object.metadata?.uid ?? '') as T | undefined) ?? object;
  }

  get(name: string): PersistentVolume | undefined {
    for (const object of this.#byUid.values()) {
      if (object.metadata?.name === name && object.metadata.namespace === undefined) return object as PersistentVolume;
    }
    return undefined;
  }

  claimOf({ spec }: PersistentVolume): PersistentVolumeClaim | undefined {
    return this.#byUid.get(spec?.claimRef?.uid ?? '') as PersistentVolumeClaim | undefined;
  }
}

const isUnfinished = (pod: Pod): boolean => pod.status?.phase !== 'Succeeded' && pod.status?.phase !== 'Failed';

function claimKeyOf({ spec }: PersistentVolume): string | undefined {
  return spec?.claimRef === undefined ? undefined : `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}`;
}

async function find<T extends KubeObject>(
  client: ResourceClient<T>,
  name: string,
  namespace?: string,
): Promise<T | undefined> {
  try {
    return await client.get(name, namespace);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
