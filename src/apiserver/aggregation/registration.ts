/**
 * APIServices of the groups and versions that this server itself serves. APIServices of built-in groups are written at
 * start, APIServices of custom groups follow their definitions. An APIService without the label of this controller is
 * not changed. Source: k8s.io/kube-aggregator/pkg/controllers/autoregister.
 */
import { servedGroupVersions } from '../../api/discovery/index.ts';
import { builtinPriority, CUSTOM_PRIORITY, REGISTRATION_GROUP } from '../../api/discovery/priorities.ts';
import type { APIService } from '../../api/kinds/cluster/apiservices/conditions.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import { isApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';
import { ownRequest } from '../bootstrap/index.ts';
import type { LoopContext, ServerContext, WriteContext } from '../rest/context.ts';
import { Work } from '../rest/name-queue.ts';
import { createObject } from '../rest/writes/create.ts';
import { deleteObject } from '../rest/writes/delete.ts';
import { updateObject } from '../rest/writes/update.ts';

type RegistrationContext = WriteContext & LoopContext & Pick<ServerContext, 'apiServices'>;

const LABEL = 'kube-aggregator.kubernetes.io/automanaged';
const ON_START = 'onstart';
const ALWAYS = 'true';
const SETTLE_MS = 20;
/** APIServices that users may redirect to another server. If a user deletes one, this server registers itself again. */
const REPLACEABLE: ReadonlySet<string> = new Set(['v1beta1.metrics.k8s.io']);

export class Registration {
  readonly #context: RegistrationContext;
  readonly #work: Work;
  readonly #builtin = new Map<string, APIService>();
  #custom: ReadonlyMap<string, APIService> = new Map();
  /** APIServices of built-in groups that have been reconciled. They are not changed again. */
  readonly #done = new Set<string>();
  #atStart: ReadonlySet<string> = new Set();
  #isFollowing = false;
  #isDue = false;

  constructor(context: RegistrationContext) {
    this.#context = context;
    for (const { group, version } of servedGroupVersions(context.kinds.builtin)) {
      if (group === REGISTRATION_GROUP) continue;
      this.#builtin.set(`${version}.${group}`, desired(group, version, ON_START));
    }
    this.#work = new Work({
      clock: context.clock,
      stopping: context.stopping,
      workers: 8,
      firstRetryMs: 250,
      lastRetryMs: 30_000,
      sync: (name) => this.#sync(name),
      failed: (name, error) =>
        context.log.v(2, 'cannot write an APIService; retrying', { name, error: messageOf(error) }),
    });
  }

  /**
   * Creates missing APIServices. Resolves when the APIServices of all built-in groups exist. Rejects if a write fails.
   */
  async start(): Promise<void> {
    const { apiServices } = this.#context;
    if (!this.#isFollowing) this.#atStart = new Set(apiServices.all.map(({ name }) => name));
    await Promise.all([...this.#builtin.keys()].map((name) => this.#sync(name)));
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    this.#readCustom();
    apiServices.onChange((name) => this.#work.add(name));
    for (const name of new Set([...this.#atStart, ...this.#custom.keys()])) this.#work.add(name);
  }

  /** Called when custom resource definitions change. Calls are batched, because changes often come in large numbers. */
  customKindsChanged(): void {
    if (!this.#isFollowing || this.#isDue) return;
    this.#isDue = true;
    this.#context.clock.setTimer(SETTLE_MS, () => {
      this.#isDue = false;
      if (!this.#context.stopping.aborted) this.#compareCustom();
    });
  }

  #compareCustom(): void {
    const before = this.#custom;
    this.#readCustom();
    for (const name of before.keys()) if (!this.#custom.has(name)) this.#work.add(name);
    for (const name of this.#custom.keys()) if (!before.has(name)) this.#work.add(name);
  }

  #readCustom(): void {
    const found = new Map<string, APIService>();
    for (const { group, version } of this.#context.kinds.custom) {
      const name = `${version}.${group}`;
      if (!this.#builtin.has(name) && !found.has(name)) found.set(name, desired(group, version, ALWAYS));
    }
    this.#custom = found;
  }

  async #sync(name: string): Promise<void> {
    await this.#reconcile(name);
    this.#done.add(name);
  }

  async #reconcile(name: string): Promise<void> {
    const wanted = this.#builtin.get(name) ?? this.#custom.get(name);
    const present = this.#context.apiServices.get(name)?.object.parse<APIService>();
    const once = this.#builtin.has(name) && this.#done.has(name) && !REPLACEABLE.has(name);
    if (once || (present === undefined && wanted === undefined)) return;
    const request = ownRequest(this.#context, 'apiservices', REGISTRATION_GROUP, '', name);
    if (present === undefined) {
      await unless('AlreadyExists', createObject(this.#context, request, structuredClone(wanted ?? {})));
      return;
    }
    const managed = present.metadata?.labels?.[LABEL];
    if (managed !== ON_START && managed !== ALWAYS) return;
    // The user has redirected the APIService with a manifest that kept the label.
    if (REPLACEABLE.has(name) && present.spec?.service !== undefined) return;
    if (managed === ON_START && (!this.#atStart.has(name) || this.#done.has(name))) return;
    if (wanted === undefined) {
      const options = { gracePeriodSeconds: undefined, propagation: 'Background' as const, dryRun: false };
      const preconditions = { uid: present.metadata?.uid, resourceVersion: undefined };
      await unless('NotFound', deleteObject(this.#context, request, { ...options, ...preconditions }));
      return;
    }
    if (semanticEqual(present.spec, wanted.spec)) return;
    await updateObject(this.#context, request, {
      strategy: request.kind.definition.strategy,
      next: (current) => ({ ...current, spec: structuredClone(wanted.spec) }) as APIService,
    });
  }
}

function desired(group: string, version: string, managed: string): APIService {
  const priority = managed === ON_START ? builtinPriority(group, version) : CUSTOM_PRIORITY;
  return {
    metadata: { name: `${version}.${group}`, labels: { [LABEL]: managed } },
    spec: {
      ...(group === '' ? {} : { group }),
      version,
      groupPriorityMinimum: priority.group,
      versionPriority: priority.version,
    },
  };
}

async function unless(reason: 'AlreadyExists' | 'NotFound', write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isApiError(error, reason)) throw error;
  }
}
