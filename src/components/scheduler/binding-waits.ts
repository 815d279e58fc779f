/** Pods whose devices are not ready to be used, before they are bound. Source: KEP-5007. */
import type { Node, Pod } from 'kubernetes-types/core/v1';
import type { ResourceClaim } from '../../api/devices/types.ts';
import { objectKey } from '../../api/meta/object.ts';
import type { Informer } from '../../client/types.ts';
import { bindingState, hasBindingConditions } from '../../core/scheduling/binding-conditions.ts';
import type { PodInfo } from '../../core/scheduling/pod-info.ts';
import type { SchedulerDeps } from './deps.ts';

export interface WaitSources {
  readonly claims: Informer<ResourceClaim>;
  readonly pods: Informer<Pod>;
}

export class BindingWaits {
  readonly #deps: Pick<SchedulerDeps, 'clock' | 'recorder'>;
  readonly #sources: WaitSources;
  readonly #waiting = new Set<() => void>();
  readonly #unsubscribes: (() => void)[];
  #stopped = false;

  constructor(deps: Pick<SchedulerDeps, 'clock' | 'recorder'>, sources: WaitSources) {
    this.#deps = deps;
    this.#sources = sources;
    const changed = (): void => {
      for (const check of this.#waiting) check();
    };
    this.#unsubscribes = [
      sources.claims.onChange({ added: changed, updated: changed, deleted: changed }),
      sources.pods.onChange({ deleted: changed }),
    ];
  }

  stop(): void {
    this.#stopped = true;
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    for (const check of this.#waiting) check();
  }

  /**
   * Resolves once all binding conditions of the pod's claims are true; rejects when one of them fails, when the pod is
   * deleted, and after the time-out.
   */
  async ready(info: PodInfo, node: Node, claims: readonly ResourceClaim[], timeoutMs: number): Promise<void> {
    const conditional = claims.filter(hasBindingConditions);
    if (conditional.length === 0) return;
    const { recorder, clock } = this.#deps;
    const message = `waiting for binding conditions for device on node ${node.metadata?.name ?? ''}`;
    recorder.event(info.pod, 'Normal', 'BindingConditionsPending', message);
    await new Promise<void>((resolve, reject) => {
      const end = (error?: unknown): void => {
        this.#waiting.delete(check);
        timer.cancel();
        if (error === undefined) resolve();
        else reject(error);
      };
      const check = (): void => {
        try {
          if (this.#stopped) throw new Error('scheduler is stopping');
          if (conditional.map((claim) => this.#isReady(info, claim, timeoutMs)).every(Boolean)) end();
        } catch (error) {
          end(error);
        }
      };
      const timer = clock.setTimer(timeoutMs, () => end(new Error('device binding timeout')));
      this.#waiting.add(check);
      check();
    });
  }

  #isReady(info: PodInfo, written: ResourceClaim, timeoutMs: number): boolean {
    const { pods, claims } = this.#sources;
    if (pods.get(info.key)?.metadata?.uid !== info.uid) throw new Error(`pod ${info.key} is deleted`);
    const shown = claims.get(objectKey(written));
    // The informer may not have shown yet what was written.
    const claim = shown?.status?.allocation === undefined ? written : shown;
    if (shown !== undefined && shown.metadata?.uid !== written.metadata?.uid)
      throw new Error(`resourceclaim "${written.metadata?.name}" was replaced`);
    const state = bindingState(claim, this.#deps.clock.nowMs(), timeoutMs);
    if (state.kind === 'failed') throw new Error(state.why);
    return state.kind === 'ready';
  }
}
