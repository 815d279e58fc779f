import type { Pod } from '../../api/generated/core/v1.ts';
import {
  hostRootFields,
  hostRootRefusal,
  MANIFEST_SOURCES,
  mayUseHostRoot,
  type PodSource,
} from '../../api/podspec/host-root-image.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { isFinal } from '../core/pod-plan/phase.ts';
import { graceOf } from '../core/pod-plan/plan.ts';
import { ANNOTATIONS, LABELS } from '../core/pod-plan/snapshot.ts';
import { CONFIG_SOURCE, fullName, isMirror } from '../sources/static-pod.ts';
import { admissionRejection, hostPortRejection, manifestRejection, type Rejection } from './admission.ts';
import { unsupportedField } from './containers/unsupported-fields.ts';
import type { ManagedPod, PodTable } from './pod-table.ts';
import { PodWorker, type PodWorkerServices } from './pod-worker.ts';
import type { PodServices } from './services.ts';

export type PodManagerServices = PodWorkerServices &
  Pick<PodServices, 'node' | 'services' | 'underPressure' | 'userNamespaces'>;

/**
 * Fills the table with the pods that this node should run, from all sources, and a worker for each. A mirror pod only
 * represents a static pod. A static pod with a changed manifest is a new pod of the same name, which starts when its
 * predecessor has ended.
 */
export class PodManager {
  private readonly services: PodManagerServices;
  private readonly table: PodTable;
  /** Static pods that wait for their predecessor to end, by full name. */
  private readonly queued = new Map<string, { readonly pod: Pod; readonly source: PodSource }>();
  private readonly onStaticChanged: () => void;
  private readonly synced = new Set<PodSource>();

  constructor(services: PodManagerServices, table: PodTable, onStaticChanged: () => void) {
    this.services = services;
    this.table = table;
    this.onStaticChanged = onStaticChanged;
  }

  /** Replaces all pods of a manifest source. */
  setStaticPods(source: PodSource, pods: readonly Pod[]): void {
    const before = this.table.staticPods.get(source) ?? new Map<Uid, Pod>();
    const now = new Map(pods.map((pod) => [toUid(pod.metadata?.uid), pod]));
    this.table.staticPods.set(source, now);
    // Must run before pods are added: predecessors left by an earlier process have to end first.
    this.sourceSynced(source);
    for (const [uid, pod] of before) {
      if (!now.has(uid) && !isForeign(this.table.managed.get(uid), source)) this.remove(uid, graceOf(pod));
    }
    for (const [uid, pod] of now) {
      if (!before.has(uid)) this.add(pod, source);
    }
    for (const name of this.queued.keys()) {
      if (![...now.values()].some((pod) => fullName(pod) === name) && this.isQueuedFrom(source, name))
        this.queued.delete(name);
    }
    this.onStaticChanged();
  }

  /** Handles an added or changed pod of this node from the API. */
  setApiPod(pod: Pod): void {
    const uid = toUid(pod.metadata?.uid);
    if (isMirror(pod)) {
      this.table.mirrors.set(fullName(pod), pod);
      this.retargetStatic(fullName(pod), pod);
      this.onStaticChanged();
      return;
    }
    const known = this.table.managed.get(uid);
    if (known !== undefined && isForeign(known, 'api')) {
      this.refuseUid(pod, known, 'api');
      return;
    }
    if (known === undefined) this.add(pod, 'api');
    else known.worker.update(pod);
    this.services.statuses.setTarget(uid, pod);
    if (pod.metadata?.deletionTimestamp !== undefined) {
      this.table.managed.get(uid)?.worker.terminate(Number(pod.metadata.deletionGracePeriodSeconds ?? graceOf(pod)));
    }
  }

  /**
   * Adds a pod that was bound to this node when the API server was last reachable. Its status is reported only after
   * the API has confirmed the pod.
   */
  setLastKnownPod(pod: Pod): void {
    this.table.hasLastKnownPods = true;
    if (!this.table.managed.has(toUid(pod.metadata?.uid))) this.add(pod, 'api');
  }

  removeApiPod(pod: Pod): void {
    const uid = toUid(pod.metadata?.uid);
    if (isMirror(pod)) {
      if (this.table.mirrors.get(fullName(pod))?.metadata?.uid === uid) {
        this.table.mirrors.delete(fullName(pod));
        this.retargetStatic(fullName(pod), undefined);
      }
      this.onStaticChanged();
      return;
    }
    if (isForeign(this.table.managed.get(uid), 'api')) return;
    this.services.statuses.setTarget(uid, undefined);
    this.remove(uid, Number(pod.metadata?.deletionGracePeriodSeconds ?? graceOf(pod)));
  }

  /** Called after the first complete listing of a source. Ends running pods that the source no longer contains. */
  sourceSynced(source: PodSource): void {
    if (source === 'api') this.table.apiHasSynced = true;
    if (this.synced.has(source)) return;
    this.synced.add(source);
    this.endOrphans();
  }

  private isQueuedFrom(source: PodSource, name: string): boolean {
    return this.queued.get(name)?.source === source;
  }

  private retargetStatic(name: string, mirror: Pod | undefined): void {
    for (const { worker, source } of this.table.managed.values()) {
      if (source !== 'api' && fullName(worker.pod) === name) {
        this.services.statuses.setTarget(worker.uid, mirrorMatches(mirror, worker.pod) ? mirror : undefined);
      }
    }
  }

  // ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────

  private add(pod: Pod, source: PodSource): void {
    const uid = toUid(pod.metadata?.uid);
    const known = this.table.managed.get(uid);
    if (known !== undefined) {
      if (isForeign(known, source)) this.refuseUid(pod, known, source);
      else known.worker.update(pod);
      return;
    }
    if (source !== 'api') {
      const predecessor = [...this.table.managed.values()].find(
        (each) => each.source !== 'api' && fullName(each.worker.pod) === fullName(pod),
      );
      if (predecessor !== undefined) {
        this.queued.set(fullName(pod), { pod, source });
        return;
      }
    }
    const rejection = this.admit(pod, source);
    const worker = new PodWorker(pod, this.services, source, (ended) => this.ended(ended));
    this.table.managed.set(uid, { worker, source, gone: false });
    if (source !== 'api') {
      const mirror = this.table.mirrors.get(fullName(pod));
      if (mirrorMatches(mirror, pod)) this.services.statuses.setTarget(uid, mirror);
    } else if (!this.table.isCutOff) this.services.statuses.setTarget(uid, pod);
    if (rejection !== undefined) {
      this.refuse(pod, rejection);
      worker.reject({ ...rejection, message: `Pod was rejected: ${rejection.message}` });
    } else this.block(worker, pod);
    // Volume sources of an adopted pod may have changed while this process was down.
    if (this.services.view.get(uid).sandboxes.length > 0) worker.configChanged();
    else worker.wake();
    this.services.cgroups
      .updateQos(this.table.activePods())
      .catch((error: unknown) => this.services.log.warn('QoS level not updated', { error: messageOf(error) }));
  }

  private refuse(pod: Pod, { reason, message }: Rejection): void {
    this.services.events.pod(pod, 'Warning', reason, message);
    this.services.log.warn('pod not admitted', { pod: fullName(pod), reason, error: message });
  }

  /** Keeps a pod Pending when it sets fields that this node does not support. */
  private block(worker: PodWorker, pod: Pod): void {
    if (worker.terminating || this.runs(pod)) return;
    const found = unsupportedField(pod, this.services.runtimeFacts());
    if (found === undefined) return;
    this.refuse(pod, found);
    worker.block(found);
  }

  /** Whether the pod already runs here, so an earlier process has admitted it. */
  private runs(pod: Pod): boolean {
    return this.services.view.get(toUid(pod.metadata?.uid)).sandboxes.length > 0;
  }

  private refuseUid(pod: Pod, known: ManagedPod, source: PodSource): void {
    const { uid } = known.worker;
    this.services.log.error('pod refused: its UID is in use', { pod: fullName(pod), uid, source, by: known.source });
  }

  private admit(pod: Pod, source: PodSource): Rejection | undefined {
    if (isFinal(pod.status?.phase)) return undefined;
    // Also check running pods: an earlier version may have admitted them.
    const [reserved] = mayUseHostRoot(source) ? [] : hostRootFields(pod);
    if (reserved !== undefined) return { reason: 'HostRootImage', message: hostRootRefusal(reserved) };
    if (pod.metadata?.deletionTimestamp !== undefined || this.runs(pod)) return undefined;
    // A start time proves that an earlier process admitted the pod.
    if (this.table.isCutOff && source === 'api' && pod.status?.startTime !== undefined) return undefined;
    // Manifest files of the control plane may use the reserved ports.
    const { settings, containers } = this.services;
    const unsafe = settings.allowedUnsafeSysctls;
    if (source === 'file') return manifestRejection(pod, unsafe) ?? containers.admit(pod);
    const input = {
      pod,
      others: this.table.otherPods(pod),
      reservedPorts: settings.reservedPorts,
      services: this.services.services,
    };
    const { devices } = this.services;
    const resources = () => devices?.rejection(pod, input.others) ?? containers.admit(pod);
    if (source !== 'api') return manifestRejection(pod, unsafe) ?? hostPortRejection(input) ?? resources();
    const rejection = admissionRejection({
      ...input,
      node: this.services.node(),
      allocatable: this.services.allocatable(),
      maxPods: settings.maxPods,
      underPressure: this.services.underPressure(pod),
      allowedUnsafeSysctls: unsafe,
    });
    return rejection ?? resources();
  }

  private remove(uid: Uid, graceSeconds: number): void {
    const known = this.table.managed.get(uid);
    if (known === undefined) return;
    known.gone = true;
    known.worker.removed = true;
    known.worker.terminate(graceSeconds);
    if (known.worker.finished) this.close(uid);
  }

  private ended(uid: Uid): void {
    const known = this.table.managed.get(uid);
    if (known?.gone === true) this.close(uid);
    this.services.containers.release(uid);
    this.services.userNamespaces.release(uid);
    this.services.cgroups
      .updateQos(this.table.activePods())
      .catch((error: unknown) => this.services.log.warn('QoS level not updated', { error: messageOf(error) }));
    // The resources released by this pod may allow a deferred resize.
    for (const { worker } of this.table.managed.values()) if (worker.resizeDeferred) worker.wake();
  }

  private close(uid: Uid): void {
    const known = this.table.managed.get(uid);
    if (known === undefined) return;
    this.table.managed.delete(uid);
    known.worker.stop();
    this.services.statuses.forget(uid);
    void this.collect(known.worker.pod);
    const next = this.queued.get(fullName(known.worker.pod));
    if (next !== undefined) {
      this.queued.delete(fullName(known.worker.pod));
      this.add(next.pod, next.source);
    }
    this.onStaticChanged();
  }

  /**
   * Removes the records, logs and files of a deleted pod. Volumes that were kept for the next start are released first,
   * because the pod's directory contains their records.
   */
  private async collect(pod: Pod): Promise<void> {
    const uid = toUid(pod.metadata?.uid);
    const { runtime, view, directories, log, volumes } = this.services;
    try {
      for (const container of view.get(uid).containers) await runtime.removeContainer(container.id);
      for (const sandbox of view.get(uid).sandboxes) {
        await runtime.stopPodSandbox(sandbox.id);
        await runtime.removePodSandbox(sandbox.id);
      }
      await volumes.tearDown(uid);
      await directories.removePod(uid);
      await directories.removeLogs(pod);
    } catch (error) {
      log.warn('pod clean-up incomplete; retrying', { pod: fullName(pod), error: messageOf(error) });
    }
    await view.refresh();
  }

  /** Ends pods that the runtime has but their source does not. */
  endOrphans(): void {
    const wanted = new Set(this.table.allStaticPods().map((pod) => toUid(pod.metadata?.uid)));
    for (const uid of this.services.view.uids()) {
      if (this.table.managed.has(uid) || wanted.has(uid)) continue;
      const { sandboxes, containers } = this.services.view.get(uid);
      const [sandbox] = sandboxes;
      const source = sourceOf(sandbox?.annotations[CONFIG_SOURCE]);
      if (sandbox === undefined || !this.synced.has(source)) continue;
      const names = [...new Set(containers.map((status) => status.labels[LABELS.containerName] ?? status.name))];
      const pod: Pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: sandbox.name,
          namespace: sandbox.namespace,
          uid,
          annotations: { ...sandbox.annotations },
        },
        spec: {
          hostNetwork: sandbox.hostNetwork,
          containers: names.map((name) => ({ name, image: '' })),
        },
      };
      this.services.log.info('killing orphaned pod', { pod: fullName(pod), uid });
      const worker = new PodWorker(pod, this.services, source, (ended) => this.ended(ended));
      this.table.managed.set(uid, { worker, source, gone: true });
      const grace = containers.map((status) => Number(status.annotations[ANNOTATIONS.terminationGracePeriod]));
      worker.removed = true;
      worker.terminate(
        Math.max(0, ...grace.map((seconds) => (Number.isNaN(seconds) ? ORPHAN_GRACE_SECONDS : seconds))),
      );
    }
  }

  stop(): void {
    for (const { worker } of this.table.managed.values()) worker.stop();
    this.table.managed.clear();
  }
}

/** Reads the source that the executor recorded on the sandbox. */
const sourceOf = (noted: string | undefined): PodSource => MANIFEST_SOURCES.find((each) => each === noted) ?? 'api';

/**
 * Whether the pod belongs to another source. Manifest authors choose UIDs, which must not connect pods of different
 * sources.
 */
const isForeign = (known: ManagedPod | undefined, source: PodSource): boolean =>
  known !== undefined && known.source !== source;

/** Upstream's default, used for containers of another kubelet. */
const ORPHAN_GRACE_SECONDS = 30;

function mirrorMatches(mirror: Pod | undefined, pod: Pod): boolean {
  return mirror !== undefined && mirror.metadata?.annotations?.['kubernetes.io/config.mirror'] === pod.metadata?.uid;
}
