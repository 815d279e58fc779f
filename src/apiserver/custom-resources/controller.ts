/**
 * Lifecycle of custom resource definitions: accepts or rejects their names, establishes them, and on deletion deletes
 * their resources first. Every API server does this; guarded writes make sure that only one of them succeeds. Source:
 * k8s.io/apiextensions-apiserver/pkg/controller/{status,establish,finalizer,apiapproval}.
 */

import type { CustomResourceDefinition, CustomResourceDefinitionNames } from '../../api/generated/apiextensions/v1.ts';
import {
  type DefinitionCondition,
  dropCondition,
  isConditionTrue,
  setCondition,
} from '../../api/kinds/cluster/customresourcedefinitions/conditions.ts';
import { CLEANUP_FINALIZER } from '../../api/kinds/cluster/customresourcedefinitions/index.ts';
import { acceptNames } from '../../api/kinds/cluster/customresourcedefinitions/names.ts';
import { structureCondition } from '../../api/kinds/cluster/customresourcedefinitions/structure.ts';
import { protectedGroupErrors } from '../../api/kinds/cluster/customresourcedefinitions/validation.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { messageOf } from '../../base/errors.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { ownRequest } from '../bootstrap/index.ts';
import type { LoopContext, WriteContext } from '../rest/context.ts';
import { ignoreNotFound, Work } from '../rest/name-queue.ts';
import { followKind } from '../rest/watches/follow.ts';
import { deleteObject } from '../rest/writes/delete.ts';
import { updateObject } from '../rest/writes/update.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import type { EventBatch } from '../watch-cache/event-window.ts';
import { type CustomKinds, DEFINITIONS } from './registry.ts';

type ControllerContext = WriteContext & LoopContext;

const GROUP = 'apiextensions.k8s.io';
const PLURAL = 'customresourcedefinitions';
const RETRY_MS = 1_000;
const DELETE_WORKERS = 8;

interface GroupNames {
  readonly group: string;
  readonly accepted: CustomResourceDefinitionNames | undefined;
}

export class DefinitionController {
  readonly #context: ControllerContext;
  readonly #kinds: CustomKinds;
  readonly #work: Work;
  readonly #names = new WeakMap<CachedObject, GroupNames>();

  constructor(context: ControllerContext, kinds: CustomKinds) {
    this.#context = context;
    this.#kinds = kinds;
    this.#work = new Work({
      clock: context.clock,
      stopping: context.stopping,
      workers: 1,
      firstRetryMs: RETRY_MS,
      lastRetryMs: RETRY_MS,
      sync: (name) => ignoreNotFound(this.#sync(name)),
      failed: (name, error) =>
        context.log.v(2, 'cannot reconcile a custom resource definition; retrying', {
          definition: name,
          error: messageOf(error),
        }),
    });
  }

  start(): void {
    const all = (): void => {
      for (const each of this.#context.cache.kind(DEFINITIONS)) this.#work.add(each.name);
    };
    const deliver = (batch: EventBatch): void => {
      for (const event of batch.events) {
        // Another definition may wait for a name that has become free.
        if (event.type === 'DELETED') all();
        else this.#work.add(event.object.name);
      }
    };
    followKind(this.#context, DEFINITIONS, deliver, all);
  }

  #later(name: string): void {
    this.#context.clock.setTimer(RETRY_MS, () => this.#work.add(name));
  }

  async #sync(name: string): Promise<void> {
    const definitions = this.#context.cache.kind(DEFINITIONS);
    const definition = definitions.get('', name)?.parse<CustomResourceDefinition>();
    if (definition === undefined) return;
    if (definition.metadata?.deletionTimestamp !== undefined) return this.#terminate(name, definition);
    const { group } = definition.spec;
    // Definitions are named after their groups, so definitions of other groups need not be parsed.
    const others = [...definitions]
      .filter((each) => each.name !== name && each.name.endsWith(`.${group}`))
      .map((each) => this.#namesOf(each))
      .filter((each) => each.group === group);
    await this.#change(name, (current) => {
      const now = timestamp(this.#context.clock.nowMs());
      const naming = acceptNames(
        current,
        others.map((each) => each.accepted),
        isConditionTrue(current, 'Established'),
      );
      current.status = { ...current.status, acceptedNames: naming.accepted };
      setCondition(current, naming.condition, now);
      if (naming.established !== undefined) setCondition(current, naming.established, now);
      const approval = approvalOf(current);
      if (approval !== undefined) setCondition(current, approval, now);
      const structure = structureCondition(current);
      if (structure === undefined) dropCondition(current, 'NonStructuralSchema');
      else setCondition(current, structure, now);
    });
  }

  #namesOf(object: CachedObject): GroupNames {
    let names = this.#names.get(object);
    if (names === undefined) {
      const { spec, status } = object.parse<CustomResourceDefinition>();
      names = { group: spec.group, accepted: status?.acceptedNames };
      this.#names.set(object, names);
    }
    return names;
  }

  /**
   * Deletes the custom resources, waits until resources with finalizers are removed, then removes the finalizer of the
   * definition.
   */
  async #terminate(name: string, definition: CustomResourceDefinition): Promise<void> {
    if (definition.metadata?.finalizers?.includes(CLEANUP_FINALIZER) !== true) return;
    const kind = this.#kinds.storageOf(name);
    if (kind?.cache !== undefined) {
      await this.#mark(name, 'True', 'InstanceDeletionInProgress', 'CustomResource deletion is in progress');
      await this.#context.cache.freshen();
      const objects = [...kind.cache.list(undefined)];
      const pending = objects.filter((each) => each.parse().metadata?.deletionTimestamp === undefined);
      await this.#deleteAll(name, pending);
      await this.#context.cache.freshen();
      if (kind.cache.size > 0) {
        this.#later(name);
        return;
      }
    } else if (isConditionTrue(definition, 'Established')) {
      // The resources are still being loaded from the store.
      this.#later(name);
      return;
    }
    await this.#change(name, (current) => {
      setCondition(
        current,
        { type: 'Terminating', status: 'False', reason: 'InstanceDeletionCompleted', message: 'removed all instances' },
        timestamp(this.#context.clock.nowMs()),
      );
      const metadata = current.metadata ?? {};
      metadata.finalizers = (metadata.finalizers ?? []).filter((each) => each !== CLEANUP_FINALIZER);
      if (metadata.finalizers.length === 0) delete metadata.finalizers;
    });
  }

  async #deleteAll(
    name: string,
    objects: readonly { readonly namespace: string; readonly name: string }[],
  ): Promise<void> {
    const kind = this.#kinds.storageOf(name);
    if (kind === undefined) return;
    const pending = [...objects];
    const template = ownRequest(this.#context, PLURAL, GROUP, '', name);
    const work = async (): Promise<void> => {
      for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
        const request = { ...template, kind, namespace: next.namespace, name: next.name };
        const deleted = deleteObject(this.#context, request, {
          gracePeriodSeconds: undefined,
          propagation: 'Background',
          uid: undefined,
          resourceVersion: undefined,
          dryRun: false,
        });
        await ignoreNotFound(deleted.then(() => {}));
      }
    };
    await Promise.all(Array.from({ length: DELETE_WORKERS }, work));
  }

  #mark(name: string, status: DefinitionCondition['status'], reason: string, message: string): Promise<void> {
    return this.#change(name, (current) => {
      setCondition(current, { type: 'Terminating', status, reason, message }, timestamp(this.#context.clock.nowMs()));
    });
  }

  async #change(name: string, change: (current: CustomResourceDefinition) => void): Promise<void> {
    await updateObject(this.#context, ownRequest(this.#context, PLURAL, GROUP, '', name), {
      strategy: {},
      next(current: KubeObject) {
        change(current as CustomResourceDefinition);
        return current;
      },
    });
  }
}

function approvalOf(definition: CustomResourceDefinition): DefinitionCondition | undefined {
  const { group } = definition.spec;
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(group)) return undefined;
  const type = 'KubernetesAPIApprovalPolicyConformant';
  const [error] = protectedGroupErrors(definition);
  const value = definition.metadata?.annotations?.['api-approved.kubernetes.io'] ?? '';
  if (error !== undefined) return { type, status: 'False', reason: 'MissingAnnotation', message: error.message };
  if (value.startsWith('unapproved')) {
    return {
      type,
      status: 'False',
      reason: 'UnapprovedAnnotation',
      message: `not approved: "api-approved.kubernetes.io"=${JSON.stringify(value)}`,
    };
  }
  return { type, status: 'True', reason: 'ApprovedAnnotation', message: `approved in ${value}` };
}
