/**
 * Writes what type checking found into the status of policies, once for each of their generations. Every API server does this; what
 * they find is the same. Source: k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus.
 */
import type { ValidatingAdmissionPolicy } from 'kubernetes-types/admissionregistration/v1';
import type { KubeObject } from '../../../../../api/meta/object.ts';
import { isApiError } from '../../../../../api/meta/status.ts';
import { messageOf } from '../../../../../base/errors.ts';
import { ownRequest } from '../../../bootstrap/index.ts';
import type { RestContext } from '../../../rest/context.ts';
import { updateObject } from '../../../rest/update.ts';
import { typeCheck } from './typecheck.ts';

const GROUP = 'admissionregistration.k8s.io';
const PLURAL = 'validatingadmissionpolicies';
const RETRY_MS = 1_000;

export class PolicyChecker {
  readonly #context: RestContext;
  readonly #pending = new Set<string>();
  #working = false;

  constructor(context: RestContext) {
    this.#context = context;
  }

  start(): void {
    const { cache, stopping } = this.#context;
    const policies = cache.kind(PLURAL);
    const follow = (): void => {
      if (stopping.aborted) return;
      policies.subscribe(
        {
          deliver: (batch) => {
            for (const event of batch.events) if (event.type !== 'DELETED') this.#enqueue(event.object.name);
          },
          reset: () => queueMicrotask(follow),
        },
        undefined,
        cache.revision,
      );
      for (const each of policies) this.#enqueue(each.name);
    };
    follow();
  }

  #enqueue(name: string): void {
    this.#pending.add(name);
    if (this.#working) return;
    this.#working = true;
    void this.#work().finally(() => {
      this.#working = false;
    });
  }

  async #work(): Promise<void> {
    for (const name of this.#pending) {
      // Requests come first, the one that has just written the policy too.
      await this.#pause();
      if (this.#context.stopping.aborted) return;
      this.#pending.delete(name);
      try {
        await this.#check(name);
      } catch (error) {
        if (isApiError(error, 'NotFound')) continue;
        this.#context.log.v(2, 'the check of a policy must wait', { policy: name, error: messageOf(error) });
        this.#context.clock.setTimer(RETRY_MS, () => {
          if (!this.#context.stopping.aborted) this.#enqueue(name);
        });
      }
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#context.clock.setTimer(0, resolve);
    });
  }

  async #check(name: string): Promise<void> {
    const { cache, kinds } = this.#context;
    const policy = cache.kind(PLURAL).get('', name)?.parse<ValidatingAdmissionPolicy>();
    const generation = policy?.metadata?.generation ?? 0;
    if (policy === undefined || generation <= (policy.status?.observedGeneration ?? 0)) return;
    const warnings = await typeCheck(policy, kinds, () => this.#pause());
    await updateObject(this.#context, ownRequest(this.#context, PLURAL, GROUP, '', name), {
      strategy: {},
      next(current: KubeObject) {
        const now = current as ValidatingAdmissionPolicy;
        // Changed or made anew meanwhile: that is another check.
        if (now.metadata?.generation !== generation || now.metadata.uid !== policy.metadata?.uid) return current;
        const typeChecking = warnings.length === 0 ? {} : { expressionWarnings: warnings };
        return { ...now, status: { ...now.status, observedGeneration: generation, typeChecking } } as KubeObject;
      },
    });
  }
}
