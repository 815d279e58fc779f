/**
 * APIServices of what this server has itself: of built-in groups and versions made at the start, of custom ones kept as
 * their definitions are. An APIService without our label belongs to its author. Source:
 * k8s.io/kube-aggregator/pkg/controllers/autoregister.
 */
import { servedGroupVersions } from '../../../api/discovery/index.ts';
import { builtinPriority, CUSTOM_PRIORITY, REGISTRATION_GROUP } from '../../../api/discovery/priorities.ts';
import type { APIService } from '../../../api/kinds/apiservices/conditions.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { ownRequest } from '../bootstrap/index.ts';
import type { RestContext } from '../rest/context.ts';
import { createObject } from '../rest/create.ts';
import { deleteObject } from '../rest/delete.ts';
import { updateObject } from '../rest/update.ts';
import { Work } from '../rest/work.ts';

const LABEL = 'kube-aggregator.kubernetes.io/automanaged';
const ON_START = 'onstart';
const ALWAYS = 'true';
const SETTLE_MS = 20;
/** Users may install another server of these; ours is back when its APIService is deleted. */
const REPLACEABLE: ReadonlySet<string> = new Set(['v1beta1.metrics.k8s.io']);

export class Registration {
  readonly #context: RestContext;
  readonly #work: Work;
  readonly #builtin = new Map<string, APIService>();
  #custom: ReadonlyMap<string, APIService> = new Map();
  /** Looked at once: built-in ones are left alone from then on. */
  readonly #done = new Set<string>();
  #atStart: ReadonlySet<string> = new Set();
  #isFollowing = false;
  #isDue = false;

  constructor(context: RestContext) {
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

  /** Writes what is missing. Resolves when the built-in ones are there; rejects when one cannot be written. */
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

  /** Definitions of custom kinds came, changed or went; often many at a time. */
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
    // A server of the user's own, whose manifest keeps the label when it is applied over ours.
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
