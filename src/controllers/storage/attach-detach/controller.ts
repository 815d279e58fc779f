/**
 * Attaches volumes to the nodes of their pods and detaches them. Each volume is handled by one worker at a time, for
 * all nodes.
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import type { CSIDriver, VolumeAttachment } from '../../../api/generated/storage/v1.ts';
import { resources } from '../../../api/resources.ts';
import { uniqueNameOf } from '../../../api/volumes/attachment.ts';
import { type NodeName, toNodeName } from '../../../base/brand.ts';
import type { Informer, WorkQueue } from '../../../client/types.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { indexByNode, podsOnNode } from '../../framework/owner-indices.ts';
import { AttachedVolumes } from './attached-volumes-controller.ts';
import { planVolume, type VolumePlan } from './plan.ts';
import { VolumeNeeds } from './volume-needs-controller.ts';

const RETRY_MS = 10_000;
const RESYNC_MS = 60_000;
const WORKERS = 8;

export const attachDetachController: ControllerSpec = {
  name: 'attachdetach',
  eventSource: 'attachdetach-controller',
  reads: [
    resources.pods,
    resources.nodes,
    resources.persistentVolumes,
    resources.persistentVolumeClaims,
    resources.volumeAttachments,
    resources.csiDrivers,
  ],
  writes: [resources.volumeAttachments, resources.nodes],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    pods: handle.informer(resources.pods),
    nodes: handle.informer(resources.nodes),
    volumes: handle.informer(resources.persistentVolumes),
    claims: handle.informer(resources.persistentVolumeClaims),
    attachments: handle.informer(resources.volumeAttachments),
    drivers: handle.informer(resources.csiDrivers),
  };
  indexByNode(access.pods);
  handle.addIndex(access.attachments, 'node', ({ spec }) => [spec.nodeName]);
  handle.addIndex(access.attachments, 'volume', ({ spec }) => [spec.source.persistentVolumeName ?? '']);
  const needs = new VolumeNeeds(handle);
  return async (scope) => {
    const attached = new AttachedVolumes(handle);
    await attached.load();
    new AttachDetachController(handle, scope, { access, needs, attached }).start();
  };
}

interface Access {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly volumes: Informer<PersistentVolume>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly attachments: Informer<VolumeAttachment>;
  readonly drivers: Informer<CSIDriver>;
}

interface Parts {
  readonly access: Access;
  readonly needs: VolumeNeeds;
  readonly attached: AttachedVolumes;
}

/** The keys of the queue are the unique names of volumes. A second queue writes `volumesAttached` of nodes. */
class AttachDetachController extends ControllerTerm {
  readonly #access: Access;
  readonly #needs: VolumeNeeds;
  readonly #attached: AttachedVolumes;
  readonly #published: WorkQueue;
  /** Last reported message by pod, reason and volume. */
  readonly #reported = new Map<string, string>();

  constructor(handle: ControllerHandle, scope: RunScope, { access, needs, attached }: Parts) {
    super(handle, scope, WORKERS);
    this.#access = access;
    this.#needs = needs;
    this.#attached = attached;
    this.#published = scope.queue((key) => attached.publish(toNodeName(key)));
  }

  override start(): void {
    this.#wakeAll();
    this.scope.every(RESYNC_MS, () => this.#wakeAll());
    this.#followPods();
    this.#followVolumes();
    this.#followAttachments();
    this.#followNodes();
  }

  #wake(keys: readonly string[]): void {
    for (const key of keys) this.queue.add(key);
  }

  #wakeAll(): void {
    this.#wake(this.#attached.keys());
  }

  #wakeVolume({ spec }: PersistentVolume): void {
    this.#wake([uniqueNameOf(spec ?? {}) ?? []].flat());
  }

  protected override async sync(key: string): Promise<void> {
    const attached = this.#attached;
    await attached.refresh(key);
    const need = this.#needs.needOf(key);
    const held = attached.held(key, new Set(need.wanted.map(({ nodeName }) => nodeName)));
    const plan = planVolume({ ...need, held });
    this.#report(key, plan.events);
    for (const nodeName of plan.attach) await attached.attach(key, nodeName, need.persistentVolumeName);
    const isBlocked = !(await this.#detach(key, plan.detach));
    for (const nodeName of [...held.map((each) => each.nodeName), ...plan.attach]) this.#publishLater(nodeName);
    // The detached volume may be required on another node.
    if (plan.detach.length > 0 && !isBlocked && need.wanted.length > 0) this.queue.add(key);
    const isWaiting = plan.waiting.length > 0 || plan.events.some(({ type }) => type === 'Warning');
    if (isWaiting || isBlocked) this.queue.addAfter(key, RETRY_MS);
  }

  #report(key: string, events: VolumePlan['events']): void {
    for (const { pod, type, reason, message } of events) {
      const about = `${pod.metadata?.uid ?? ''}/${reason}/${key}`;
      if (this.#reported.get(about) === message) continue;
      this.#reported.set(about, message);
      this.handle.recorder.event(pod, type, reason, message);
    }
  }

  /** Detaches the volume from nodes. The result is false if it stays attached to one of them. */
  async #detach(key: string, detach: VolumePlan['detach']): Promise<boolean> {
    let areDone = true;
    for (const { nodeName, isForced } of detach) {
      if (isForced)
        this.handle.log.warn('volume force-detached; its node may still use it', { volume: key, node: nodeName });
      if (!(await this.#attached.detach(key, nodeName, isForced))) areDone = false;
    }
    return areDone;
  }

  #publishLater(nodeName: NodeName): void {
    if (!this.#attached.isPublished(nodeName)) this.#published.add(nodeName);
  }

  #followPods(): void {
    const wake = (pod: Pod): void => {
      if ((pod.spec?.nodeName ?? '') !== '') this.#wake(this.#needs.keysOf(pod));
    };
    this.scope.onChange(this.#access.pods, {
      added: wake,
      updated: (pod, old) => {
        if (pod.status?.phase !== old.status?.phase || pod.spec?.nodeName !== old.spec?.nodeName) wake(pod);
      },
      deleted: (pod) => {
        const prefix = `${pod.metadata?.uid ?? ''}/`;
        for (const about of this.#reported.keys()) if (about.startsWith(prefix)) this.#reported.delete(about);
        wake(pod);
      },
    });
  }

  /** Follows persistent volumes, and the claims and drivers whose changes affect them. */
  #followVolumes(): void {
    const { volumes, claims, attachments, drivers } = this.#access;
    const wakeClaim = ({ spec }: PersistentVolumeClaim): void => {
      const volume = volumes.get(spec?.volumeName ?? '');
      if (volume !== undefined) this.#wakeVolume(volume);
    };
    this.scope.onChange(claims, { added: wakeClaim, updated: wakeClaim, deleted: wakeClaim });
    this.scope.onChange(volumes, {
      added: (volume) => {
        for (const each of attachments.byIndex('volume', volume.metadata?.name ?? ''))
          this.#attached.observe(each, { isDeleted: false });
        this.#wakeVolume(volume);
      },
      updated: (volume) => this.#wakeVolume(volume),
      deleted: (volume) => {
        this.#attached.volumeDeleted(volume.metadata?.name ?? '');
        this.#wakeVolume(volume);
      },
    });
    const wakeDriver = ({ metadata }: CSIDriver): void => {
      for (const volume of volumes.list()) if (volume.spec?.csi?.driver === metadata?.name) this.#wakeVolume(volume);
    };
    this.scope.onChange(drivers, { added: wakeDriver, updated: wakeDriver, deleted: wakeDriver });
  }

  #followAttachments(): void {
    const wake = (attachment: VolumeAttachment): void => {
      this.#attached.observe(attachment, { isDeleted: false });
      this.#wake([this.#attached.keyOf(attachment)]);
    };
    this.scope.onChange(this.#access.attachments, {
      added: wake,
      updated: wake,
      deleted: (attachment) => {
        this.#attached.observe(attachment, { isDeleted: true });
        this.#wake([this.#attached.keyOf(attachment)]);
        this.#published.add(attachment.spec.nodeName);
      },
    });
  }

  #followNodes(): void {
    const wake = ({ metadata }: Node): void => {
      const name = toNodeName(metadata?.name);
      const pods = podsOnNode(this.#access.pods, name);
      this.#wake([...this.#attached.keysOn(name), ...pods.flatMap((pod) => this.#needs.keysOf(pod))]);
      this.#publishLater(name);
    };
    this.scope.onChange(this.#access.nodes, {
      added: (node) => {
        this.#attached.nodeAdded(node);
        wake(node);
      },
      updated: (node, old) => {
        if (nodeFacts(node) !== nodeFacts(old)) wake(node);
      },
      deleted: (node) => {
        this.#attached.nodeDeleted(node);
        wake(node);
      },
    });
  }
}

/** Node fields that the plan depends on. */
function nodeFacts({ metadata, spec, status }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  return JSON.stringify([metadata?.uid, spec?.taints, status?.volumesInUse, status?.volumesAttached, ready]);
}
