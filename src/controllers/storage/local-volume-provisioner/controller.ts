/** Creates and deletes volumes of the embedded local provisioner. */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '../../../api/generated/core/v1.ts';
import type { StorageClass } from '../../../api/generated/storage/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { annotationOf, classNameOf } from '../../../api/volumes/binding.ts';
import { LOCAL_DELETE, LOCAL_FINALIZER, LOCAL_NODE } from '../../../api/volumes/local-provisioner.ts';
import type { Informer, WorkQueue } from '../../../client/types.ts';
import { withPlannedFinalizer } from '../../framework/core/protection-finalizer.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreAlreadyExists } from '../../framework/ignore-already-exists.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { localStorageClass, planLocalClaim, planLocalVolume } from './plan.ts';

const RETRY_MS = 15_000;

export const localVolumeProvisioner: ControllerSpec = {
  name: 'local-volume-provisioner',
  eventSource: 'hyperedge.dev/local',
  reads: [resources.persistentVolumes, resources.persistentVolumeClaims, resources.storageClasses, resources.nodes],
  writes: [resources.persistentVolumes, resources.persistentVolumeClaims, resources.storageClasses, resources.nodes],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    volumes: handle.informer(resources.persistentVolumes),
    claims: handle.informer(resources.persistentVolumeClaims),
    classes: handle.informer(resources.storageClasses),
    nodes: handle.informer(resources.nodes),
  };
  return async (scope) => {
    if (handle.options.localVolumes)
      await ignoreAlreadyExists(() => handle.writer(resources.storageClasses).create(localStorageClass));
    new LocalVolumeProvisioner(handle, access, scope).start();
  };
}

interface Access {
  readonly volumes: Informer<PersistentVolume>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly classes: Informer<StorageClass>;
  readonly nodes: Informer<Node>;
}

/** One term of the provisioner, with a queue each for claims, volumes and nodes. */
class LocalVolumeProvisioner {
  readonly #handle: ControllerHandle;
  readonly #access: Access;
  readonly #scope: RunScope;
  readonly #claimQueue: WorkQueue;
  readonly #volumeQueue: WorkQueue;
  readonly #nodeQueue: WorkQueue;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    this.#handle = handle;
    this.#access = access;
    this.#scope = scope;
    this.#claimQueue = scope.queue((key) => this.#provision(key), 2);
    this.#volumeQueue = scope.queue((name) => this.#reclaim(name), 2);
    this.#nodeQueue = scope.queue((name) => this.#publishDeletions(name), 1);
  }

  start(): void {
    const { claims, volumes, nodes } = this.#access;
    const wakeClaim = (claim: PersistentVolumeClaim): void => this.#claimQueue.add(objectKey(claim));
    this.#scope.onChange(claims, { added: wakeClaim, updated: wakeClaim });
    const wakeVolume = (volume: PersistentVolume): void => this.#volumeQueue.add(volume.metadata?.name ?? '');
    this.#scope.onChange(volumes, {
      added: wakeVolume,
      updated: wakeVolume,
      deleted: (volume) => this.#nodeQueue.add(nodeNameOf(volume)),
    });
    const wakeNode = (node: Node): void => {
      for (const volume of volumes.list())
        if (annotationOf(volume, LOCAL_NODE) === node.metadata?.name) wakeVolume(volume);
    };
    this.#scope.onChange(nodes, {
      updated: (node, old) => {
        if (JSON.stringify(node.metadata?.annotations) !== JSON.stringify(old.metadata?.annotations)) wakeNode(node);
      },
      deleted: wakeNode,
    });
  }

  /** Creates the volume of a claim. */
  async #provision(key: string): Promise<void> {
    const { claims, classes, nodes } = this.#access;
    const claim = claims.get(key);
    if (claim === undefined) return;
    const { recorder } = this.#handle;
    const plan = planLocalClaim(claim, classes.get(classNameOf(claim)), (name) => nodes.get(name));
    if (plan.kind === 'fail') {
      recorder.event(claim, 'Warning', 'ProvisioningFailed', plan.message);
      this.#claimQueue.addAfter(key, RETRY_MS);
    } else if (plan.kind === 'deselect') {
      await ignoreNotFound(() => this.#handle.writer(resources.persistentVolumeClaims).update(plan.claim));
    } else if (plan.kind === 'create') {
      await ignoreAlreadyExists(async () => {
        await this.#handle.writer(resources.persistentVolumes).create(plan.volume);
        const message = `Successfully provisioned volume ${plan.volume.metadata?.name}`;
        recorder.event(claim, 'Normal', 'ProvisioningSucceeded', message);
      });
    }
  }

  /** Releases or deletes a volume whose claim was deleted. */
  async #reclaim(name: string): Promise<void> {
    const volume = this.#access.volumes.get(name);
    if (volume === undefined) return;
    const client = this.#handle.writer(resources.persistentVolumes);
    switch (planLocalVolume(volume, this.#access.nodes.get(nodeNameOf(volume)))) {
      case 'delete': {
        const { uid } = volume.metadata ?? {};
        const options = uid === undefined ? {} : { preconditions: { uid } };
        return ignoreNotFound(() => client.delete(name, undefined, options));
      }
      case 'release':
        return ignoreNotFound(() => client.update(withPlannedFinalizer(volume, LOCAL_FINALIZER, 'remove')));
      case 'deleteData':
        this.#nodeQueue.add(nodeNameOf(volume));
    }
  }

  /** Writes the names of the volumes whose data a node must delete into an annotation of the Node. */
  async #publishDeletions(nodeName: string): Promise<void> {
    const node = this.#access.nodes.get(nodeName);
    if (node === undefined) return;
    const names = this.#access.volumes
      .list()
      .filter(
        (volume) =>
          annotationOf(volume, LOCAL_NODE) === nodeName &&
          volume.spec?.persistentVolumeReclaimPolicy === 'Delete' &&
          planLocalVolume(volume, undefined) === 'release',
      )
      .map(({ metadata }) => metadata?.name ?? '');
    const text = names.sort().join(',');
    if (text === (node.metadata?.annotations?.[LOCAL_DELETE] ?? '')) return;
    const annotations = { [LOCAL_DELETE]: text === '' ? null : text };
    await ignoreNotFound(() =>
      this.#handle.writer(resources.nodes).patch(nodeName, undefined, 'merge', { metadata: { annotations } }),
    );
  }
}

const nodeNameOf = (volume: PersistentVolume): string => annotationOf(volume, LOCAL_NODE) ?? '';
