/** Delays the binding of a pod until its devices are ready for use. Source: KEP-5007. */

import type { ResourceClaim } from '../api/devices/types.ts';
import type { Node, Pod } from '../api/generated/core/v1.ts';
import { objectKey } from '../api/meta/object.ts';
import type { PodInfo } from '../api/podspec/scheduling/pod-info.ts';
import type { Informer } from '../client/types.ts';
import { bindingState, hasBindingConditions } from './core/binding-conditions.ts';
import type { SchedulerDeps } from './deps.ts';
import { Waits } from './waits.ts';

export interface WaitSources {
  readonly claims: Informer<ResourceClaim>;
  readonly pods: Informer<Pod>;
}

export class BindingWaits {
  readonly #deps: Pick<SchedulerDeps, 'clock' | 'recorder'>;
  readonly #sources: WaitSources;
  readonly #waits: Waits;
  readonly #unsubscribes: (() => void)[];

  constructor(deps: Pick<SchedulerDeps, 'clock' | 'recorder'>, sources: WaitSources) {
    this.#deps = deps;
    this.#sources = sources;
    this.#waits = new Waits(deps.clock);
    const { changed } = this.#waits;
    this.#unsubscribes = [
      sources.claims.onChange({ added: changed, updated: changed, deleted: changed }),
      sources.pods.onChange({ deleted: changed }),
    ];
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#waits.stop();
  }

  /**
   * Resolves when all binding conditions of the claims are true. Rejects if a condition fails, if the pod is deleted,
   * or after the timeout.
   */
  async ready(info: PodInfo, node: Node, claims: readonly ResourceClaim[], timeoutMs: number): Promise<void> {
    const conditional = claims.filter(hasBindingConditions);
    if (conditional.length === 0) return;
    const message = `waiting for binding conditions for device on node ${node.metadata?.name ?? ''}`;
    this.#deps.recorder.event(info.pod, 'Normal', 'BindingConditionsPending', message);
    const isReady = (): boolean => conditional.map((claim) => this.#isReady(info, claim, timeoutMs)).every(Boolean);
    await this.#waits.until(isReady, timeoutMs, 'device binding timeout');
  }

  #isReady(info: PodInfo, written: ResourceClaim, timeoutMs: number): boolean {
    const { pods, claims } = this.#sources;
    if (pods.get(info.key)?.metadata?.uid !== info.uid) throw new Error(`pod ${info.key} is deleted`);
    const shown = claims.get(objectKey(written));
    // While the informer does not show the allocation yet, use the claim as it was written.
    const claim = shown?.status?.allocation === undefined ? written : shown;
    if (shown !== undefined && shown.metadata?.uid !== written.metadata?.uid)
      throw new Error(`resourceclaim "${written.metadata?.name}" was replaced`);
    const state = bindingState(claim, this.#deps.clock.nowMs(), timeoutMs);
    if (state.kind === 'failed') throw new Error(state.why);
    return state.kind === 'ready';
  }
}
