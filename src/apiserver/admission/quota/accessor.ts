/**
 * Charges the quotas of a namespace before an object is stored, so that concurrent requests never exceed them. Requests
 * that arrive during a write are settled together by one write of the quotas, guarded by their revisions. Source:
 * k8s.io/apiserver/pkg/admission/plugin/resourcequota, which also works per namespace.
 */
import type { ResourceQuota } from '../../../api/generated/core/v1.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { type Amounts, addTo, amountsOf, exceededAmounts, listOf, sameAmounts } from '../../../api/quota/amounts.ts';
import { checkRequest, type QuotaRequest, type QuotaState } from '../../../api/quota/check.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';

/** Maximum number of attempts. Each conflict means that another write succeeded. */
const MAX_TRIES = 100;
const TIMEOUT_MS = 10_000;
/** Time after an object was stored during which the quota controller may not have seen the object. */
const UNSEEN_MS = 1_000;

export interface QuotaStore {
  /** Quotas of the namespace in the watch cache. */
  cached(namespace: string): readonly CachedObject[];
  stored(namespace: string, name: string): Promise<CachedObject | undefined>;
  /** Writes all changes or none. Returns undefined if a quota has changed since `previous`. */
  replace(
    changes: readonly { readonly previous: CachedObject; readonly object: ResourceQuota }[],
  ): Promise<readonly CachedObject[] | undefined>;
}

/** Amounts reserved in one quota. */
interface Charge {
  readonly name: string;
  readonly uid: string | undefined;
  readonly amounts: Amounts;
}

export interface Refusal {
  readonly message: string;
  readonly plain: boolean;
}

export type QuotaOutcome = { readonly refusal: Refusal } | { readonly charges: readonly Charge[] };

interface ReserveItem {
  readonly request: QuotaRequest;
  readonly dryRun: boolean;
  readonly resolve: (settled: QuotaOutcome) => void;
  readonly reject: (error: unknown) => void;
}

interface ReleaseItem {
  readonly charges: readonly Charge[];
  readonly resolve: () => void;
}

type Item = ReserveItem | ReleaseItem;

interface Known extends QuotaState {
  readonly object: CachedObject;
}

export class QuotaAccessor {
  readonly #store: QuotaStore;
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Item[]>();
  readonly #busy = new Set<string>();
  /** Last written version of each quota, by namespace and name, until the watch cache has it. */
  readonly #written = new Map<string, Map<string, CachedObject>>();

  /** Reservations that are not stored yet or were stored only recently, by namespace and name of the quota. */
  readonly #unsettled = new Map<string, { open: number; lastMs: number }>();

  constructor(store: QuotaStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Reserves usage for a request. Throws an ApiError when the quotas cannot be written in time. */
  async reserve(namespace: string, request: QuotaRequest, dryRun: boolean): Promise<QuotaOutcome> {
    let isLate = false;
    const answer = new Promise<QuotaOutcome>((resolve, reject) => {
      this.#add(namespace, { request, dryRun, resolve, reject });
    });
    const late = new Promise<never>((_, reject) => {
      const timer = this.#clock.setTimer(TIMEOUT_MS, () => {
        isLate = true;
        reject(new ApiError('InternalError', 'Internal error occurred: resource quota evaluation timed out'));
      });
      const cancel = (): void => timer.cancel();
      answer.then(cancel, cancel);
    });
    // A charge granted after the request timed out is refunded.
    answer.then(
      (settled) => {
        if (isLate && 'charges' in settled) void this.refund(namespace, settled.charges);
      },
      () => {},
    );
    return Promise.race([answer, late]);
  }

  isUnsettled(namespace: string, name: string): boolean {
    const key = `${namespace}/${name}`;
    const known = this.#unsettled.get(key);
    if (known === undefined) return false;
    if (known.open > 0 || this.#clock.monotonicMs() - known.lastMs < UNSEEN_MS) return true;
    this.#unsettled.delete(key);
    return false;
  }

  /** Ends a reservation: its object has been stored or will not be. */
  settle(namespace: string, charges: readonly Charge[]): void {
    for (const { name } of charges) this.#note(namespace, name, -1);
  }

  #note(namespace: string, name: string, more: 1 | -1): void {
    const key = `${namespace}/${name}`;
    const open = (this.#unsettled.get(key)?.open ?? 0) + more;
    this.#unsettled.set(key, { open, lastMs: this.#clock.monotonicMs() });
  }

  /** Returns reserved amounts. Never fails: the quota controller corrects amounts that could not be returned. */
  refund(namespace: string, charges: readonly Charge[]): Promise<void> {
    if (charges.length === 0) return Promise.resolve();
    this.settle(namespace, charges);
    return new Promise((resolve) => {
      this.#add(namespace, { charges, resolve });
    });
  }

  #add(namespace: string, item: Item): void {
    const waiting = this.#waiting.get(namespace);
    if (waiting === undefined) this.#waiting.set(namespace, [item]);
    else waiting.push(item);
    if (!this.#busy.has(namespace)) void this.#work(namespace);
  }

  async #work(namespace: string): Promise<void> {
    this.#busy.add(namespace);
    for (;;) {
      const items = this.#waiting.get(namespace);
      if (items === undefined) break;
      this.#waiting.delete(namespace);
      try {
        await this.#settle(namespace, items);
      } catch (error) {
        for (const item of items) {
          if ('request' in item) item.reject(error);
          else item.resolve();
        }
      }
    }
    this.#busy.delete(namespace);
  }

  async #settle(namespace: string, items: readonly Item[]): Promise<void> {
    // The cache may be outdated, so a request is rejected only by quotas that were read from the store.
    let certain = false;
    for (let attempt = 1; attempt <= MAX_TRIES; attempt++) {
      const quotas = certain ? await this.#read(namespace) : this.#known(namespace);
      const { answers, changed } = decide(quotas, items);
      const mustRead = !certain && answers.some((answer) => answer !== undefined && 'refusal' in answer);
      certain = true;
      if (mustRead) continue;
      if (changed.length > 0) {
        const written = await this.#store.replace(changed);
        if (written === undefined) continue;
        this.#remember(namespace, written);
      }
      for (const [index, item] of items.entries()) {
        const answer = answers[index];
        if (!('request' in item)) item.resolve();
        else if (answer !== undefined) {
          if ('charges' in answer) for (const { name } of answer.charges) this.#note(namespace, name, 1);
          item.resolve(answer);
        }
      }
      return;
    }
    throw new ApiError(
      'Conflict',
      `Operation cannot be fulfilled on resourcequotas in namespace ${namespace}: they were changed too often by other requests; try again`,
    );
  }

  #known(namespace: string): Known[] {
    const written = this.#written.get(namespace);
    const current = this.#store.cached(namespace).map((object) => {
      const ours = written?.get(object.name);
      return ours !== undefined && ours.revision > object.revision ? ours : object;
    });
    if (written !== undefined) {
      const newer = current.filter((object) => written.get(object.name) === object);
      if (newer.length === 0) this.#written.delete(namespace);
      else this.#written.set(namespace, new Map(newer.map((object) => [object.name, object])));
    }
    return current.map(stateOf);
  }

  async #read(namespace: string): Promise<Known[]> {
    const objects = await Promise.all(
      this.#store.cached(namespace).map(({ name }) => this.#store.stored(namespace, name)),
    );
    return objects.filter((object) => object !== undefined).map(stateOf);
  }

  #remember(namespace: string, objects: readonly CachedObject[]): void {
    const written = this.#written.get(namespace) ?? new Map<string, CachedObject>();
    for (const object of objects) written.set(object.name, object);
    this.#written.set(namespace, written);
  }
}

function stateOf(object: CachedObject): Known {
  const quota = object.shared<ResourceQuota>() as ResourceQuota;
  return { object, name: object.name, quota, used: amountsOf(quota.status?.used) };
}

interface Decision {
  /** One result per item; undefined where no quota applies. */
  readonly answers: readonly (QuotaOutcome | undefined)[];
  readonly changed: readonly { readonly previous: CachedObject; readonly object: ResourceQuota }[];
}

/** Decides items in order. Each item sees the usage that remains after the earlier items. */
function decide(quotas: readonly Known[], items: readonly Item[]): Decision {
  const running = [...quotas];
  const answers: (QuotaOutcome | undefined)[] = new Array(items.length).fill(undefined);
  for (const item of items) if (!('request' in item)) subtractCharges(running, item.charges);
  for (const [index, item] of items.entries()) {
    if (!('request' in item)) continue;
    const decision = checkRequest(running, item.request);
    if (decision.kind === 'refused') {
      answers[index] = { refusal: { message: decision.message, plain: decision.plain === true } };
      continue;
    }
    const charges: Charge[] = [];
    for (const [at, amounts] of item.dryRun ? [] : decision.charges) {
      const state = running[at];
      if (state === undefined) continue;
      const used = new Map(state.used);
      addTo(used, amounts);
      running[at] = { ...state, used };
      charges.push({ name: state.name, uid: state.quota.metadata?.uid, amounts });
    }
    answers[index] = { charges };
  }
  const changed = running.filter(({ used }, index) => !sameAmounts(used, quotas[index]?.used ?? new Map()));
  return {
    answers,
    changed: changed.map(({ object, quota, used }) => ({
      previous: object,
      object: { ...quota, status: { ...quota.status, used: listOf(used) } },
    })),
  };
}

function subtractCharges(running: Known[], charges: readonly Charge[]): void {
  for (const { name, uid, amounts } of charges) {
    const at = running.findIndex((state) => state.name === name && state.quota.metadata?.uid === uid);
    const state = running[at];
    if (state !== undefined) running[at] = { ...state, used: exceededAmounts(state.used, amounts) };
  }
}
