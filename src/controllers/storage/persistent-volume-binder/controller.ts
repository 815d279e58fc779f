/** Binds claims to volumes. */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import type { StorageClass } from '../../../api/generated/storage/v1.ts';
import { type KubeObject, objectKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { defaultClassOf } from '../../../api/volumes/binding.ts';
import { claimNames } from '../../../api/volumes/pod-claims.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { type CandidateWaker, candidateWaker } from '../../framework/candidate-waker.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
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

interface Access {
  readonly volumes: Informer<PersistentVolume>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly classes: Informer<StorageClass>;
  readonly pods: Informer<Pod>;
  readonly volumeClient: ResourceClient<PersistentVolume>;
  readonly claimClient: ResourceClient<PersistentVolumeClaim>;
}

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    volumes: handle.informer(resources.persistentVolumes),
    claims: handle.informer(resources.persistentVolumeClaims),
    classes: handle.informer(resources.storageClasses),
    pods: handle.informer(resources.pods),
    volumeClient: handle.writer(resources.persistentVolumes),
    claimClient: handle.writer(resources.persistentVolumeClaims),
  };
  indexByClaim(access.pods);
  return (scope) => new VolumeBinder(handle, access, scope).start();
}

/** The queue contains keys of claims, which have a namespace, and names of volumes. */
class VolumeBinder extends ControllerTerm {
  readonly #access: Access;
  readonly #wakeClaims: CandidateWaker<PersistentVolumeClaim>;
  readonly #wakeVolumes: CandidateWaker<PersistentVolume>;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    // The queue has a single worker, because two claims that are planned concurrently could select the same volume.
    super(handle, scope, 1);
    this.#access = access;
    this.#wakeClaims = candidateWaker(scope, access.claims, (claim) => this.queue.add(objectKey(claim)));
    this.#wakeVolumes = candidateWaker(scope, access.volumes, (volume) => this.queue.add(volume.metadata?.name ?? ''));
  }

  override start(): void {
    const { claims, volumes, classes, pods } = this.#access;
    this.scope.onChange(claims, {
      added: this.#wakeSides,
      updated: this.#wakeSides,
      deleted: (claim) => {
        const key = objectKey(claim);
        this.#wakeVolumes(undefined, (volume) => claimKeyOf(volume) === key);
      },
    });
    this.scope.onChange(volumes, {
      added: this.#wakeVolume,
      updated: this.#wakeVolume,
      deleted: (volume) => this.#wakeClaims(undefined, (claim) => claim.spec?.volumeName === volume.metadata?.name),
    });
    this.scope.onChange(classes, { added: this.#wakeUnbound, updated: this.#wakeUnbound });
    this.scope.onChange(pods, { added: this.#wakeClaimsOf });
  }

  readonly #wakeUnbound = (): void => this.#wakeClaims(undefined, (claim) => claim.status?.phase !== 'Bound');

  readonly #wakeSides = (claim: PersistentVolumeClaim): void => {
    this.queue.add(objectKey(claim));
    const name = claim.spec?.volumeName ?? '';
    if (name !== '') this.queue.add(name);
  };

  readonly #wakeVolume = (volume: PersistentVolume): void => {
    this.queue.add(volume.metadata?.name ?? '');
    const key = claimKeyOf(volume);
    if (key !== undefined) this.queue.add(key);
    if (volume.status?.phase === 'Available') this.#wakeUnbound();
  };

  readonly #wakeClaimsOf = (pod: Pod): void => {
    for (const name of claimNames(pod)) {
      const key = `${pod.metadata?.namespace ?? ''}/${name}`;
      if (this.#access.claims.get(key)?.status?.phase === 'Pending') this.queue.add(key);
    }
  };

  protected override async sync(key: string): Promise<void> {
    await ignoreNotFound(() => (key.includes('/') ? this.#syncClaim(key) : this.#syncVolume(key)));
  }

  async #syncClaim(key: string): Promise<void> {
    const { claims, volumes, classes, pods, volumeClient } = this.#access;
    const copies = new Copies();
    const first = claims.get(key);
    if (first === undefined) return;
    // The volume is read live, because a claim whose volume is only missing in the informer must not be marked as lost.
    const name = first.spec?.volumeName ?? '';
    if (name !== '' && volumes.get(name) === undefined) copies.keep(await find(volumeClient, name));
    await this.#carryOut(copies, first, (claim) =>
      planClaim(claim, {
        volumes: volumes.list().map((volume) => copies.newest(volume)),
        volume: (each) => copies.get(each) ?? volumes.get(each),
        storageClass: (each) => classes.get(each),
        defaultClass: defaultClassOf(classes.list()),
        pods: podsWithClaim(pods, key).filter(isUnfinished),
      }),
    );
  }

  async #syncVolume(name: string): Promise<void> {
    const first = this.#access.volumes.get(name);
    if (first === undefined) return;
    const copies = new Copies();
    await this.#carryOut(
      copies,
      first,
      (volume) => planVolume(volume, copies.claimOf(volume)),
      (volume) => this.#keepClaimOf(volume, copies),
    );
  }

  /**
   * Adds the claim of a volume to the copies. A volume is released only when the API server confirms that its claim is
   * deleted, because released data may be deleted.
   */
  async #keepClaimOf(volume: PersistentVolume, copies: Copies): Promise<void> {
    const { claims, claimClient } = this.#access;
    const { namespace = '', name = '', uid = '' } = volume.spec?.claimRef ?? {};
    if (uid === '' || copies.claimOf(volume) !== undefined) return;
    const known = claims.get(`${namespace}/${name}`);
    copies.keep(known?.metadata?.uid === uid ? known : await find(claimClient, name, namespace));
  }

  /** Performs the planned write and plans again with its result, until no write is left. */
  async #carryOut<T extends PersistentVolume | PersistentVolumeClaim>(
    copies: Copies,
    first: T,
    plan: (object: T) => BinderPlan,
    before?: (object: T) => Promise<void>,
  ): Promise<void> {
    let object = first;
    for (let count = 0; count < MAX_STEPS; count++) {
      await before?.(object);
      const { step, event } = plan(object);
      if (event !== undefined) this.handle.recorder.event(object, event.type, event.reason, event.message);
      if (step === undefined) return;
      const next = await this.#write(step);
      copies.keep(next);
      if (next.metadata?.uid === object.metadata?.uid) object = next as T;
    }
  }

  #write(step: BinderStep): Promise<PersistentVolume | PersistentVolumeClaim> {
    const { claimClient, volumeClient } = this.#access;
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
  }
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
