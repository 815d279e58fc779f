/**
 * Writes the type checking result to the status of policies, once per generation. Every API server does this, with
 * equal results. Source: k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus.
 */
import type { ValidatingAdmissionPolicy } from '../../api/generated/admissionregistration/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { messageOf } from '../../base/errors.ts';
import { typeCheck } from '../admission/policies/validating/typecheck.ts';
import type { LoopContext, WriteContext } from '../rest/context.ts';
import { ignoreNotFound, Work } from '../rest/name-queue.ts';
import { followKind } from '../rest/watches/follow.ts';
import { updateObject } from '../rest/writes/update.ts';
import { ownRequest } from './index.ts';

type PolicyStatusContext = WriteContext & LoopContext;

const GROUP = 'admissionregistration.k8s.io';
const PLURAL = 'validatingadmissionpolicies';
const RETRY_MS = 1_000;

export class PolicyChecker {
  readonly #context: PolicyStatusContext;
  readonly #work: Work;

  constructor(context: PolicyStatusContext) {
    this.#context = context;
    this.#work = new Work({
      clock: context.clock,
      stopping: context.stopping,
      workers: 1,
      firstRetryMs: RETRY_MS,
      lastRetryMs: RETRY_MS,
      sync: (name) => ignoreNotFound(this.#check(name)),
      failed: (name, error) =>
        context.log.v(2, 'cannot write the type check of a policy; retrying', {
          policy: name,
          error: messageOf(error),
        }),
    });
  }

  start(): void {
    followKind(
      this.#context,
      PLURAL,
      (batch) => {
        for (const event of batch.events) if (event.type !== 'DELETED') this.#work.add(event.object.name);
      },
      () => {
        for (const each of this.#context.cache.kind(PLURAL)) this.#work.add(each.name);
      },
    );
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#context.clock.setTimer(0, resolve);
    });
  }

  async #check(name: string): Promise<void> {
    // Requests run first, including the request that has written the policy.
    await this.#pause();
    const { cache, kinds, stopping } = this.#context;
    if (stopping.aborted) return;
    const policy = cache.kind(PLURAL).get('', name)?.parse<ValidatingAdmissionPolicy>();
    const generation = policy?.metadata?.generation ?? 0;
    if (policy === undefined || generation <= (policy.status?.observedGeneration ?? 0)) return;
    const warnings = await typeCheck(policy, kinds, () => this.#pause());
    await updateObject(this.#context, ownRequest(this.#context, PLURAL, GROUP, '', name), {
      strategy: {},
      next(current: KubeObject) {
        const now = current as ValidatingAdmissionPolicy;
        // The policy has changed or was re-created; its new generation gets its own check.
        if (now.metadata?.generation !== generation || now.metadata.uid !== policy.metadata?.uid) return current;
        const typeChecking = warnings.length === 0 ? {} : { expressionWarnings: warnings };
        return { ...now, status: { ...now.status, observedGeneration: generation, typeChecking } } as KubeObject;
      },
    });
  }
}
