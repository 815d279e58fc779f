/**
 * The API priority and fairness configuration controller: watches FlowSchemas and priority levels, ensures the
 * mandatory and suggested objects, and sets the Dangling condition of schemas whose priority level does not exist.
 * Source: k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go,
 * k8s.io/kubernetes/pkg/registry/flowcontrol/{rest,ensurer}.
 */

import {
  AUTO_UPDATE_ANNOTATION,
  mandatoryLevels,
  mandatorySchemas,
  suggestedLevels,
  suggestedSchemas,
} from '../../api/flow-control/defaults.ts';
import type { FlowSchema, PriorityLevelConfiguration } from '../../api/generated/flowcontrol/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { ensureObject, ownRequest } from '../bootstrap/index.ts';
import { type FlowControl, reconcileFlowObject } from '../core/flow-control/index.ts';
import type { Exchange } from '../http/exchange.ts';
import type { LoopContext, WriteContext } from '../rest/context.ts';
import { followKind } from '../rest/watches/follow.ts';
import { deleteObject } from '../rest/writes/delete.ts';
import { updateObject } from '../rest/writes/update.ts';

type ConfigControllerContext = WriteContext & LoopContext;

const GROUP = 'flowcontrol.apiserver.k8s.io';
const SCHEMAS = 'flowschemas';
const LEVELS = 'prioritylevelconfigurations';
const PRODUCER = 'api-priority-and-fairness-config-producer-v1';
const CONSUMER = 'api-priority-and-fairness-config-consumer-v1';
/** Delay between a change and the next reconciliation. It grows while another writer reverts the changes. */
const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 60_000;

const levels = [...mandatoryLevels, ...suggestedLevels];
const schemas = [...mandatorySchemas, ...suggestedSchemas];

/** Creates missing mandatory and suggested objects, and reconciles existing objects with the auto-update annotation. */
export async function ensureFlowObjects(context: ConfigControllerContext): Promise<void> {
  await Promise.all([
    ...levels.map((level) =>
      ensureObject(
        context,
        LEVELS,
        GROUP,
        level,
        (stored) => reconcileFlowObject(level, stored as typeof level, mandatoryLevels.includes(level)),
        PRODUCER,
      ),
    ),
    ...schemas.map((schema) =>
      ensureObject(
        context,
        SCHEMAS,
        GROUP,
        schema,
        (stored) => reconcileFlowObject(schema, stored as typeof schema, mandatorySchemas.includes(schema)),
        PRODUCER,
      ),
    ),
  ]);
}

export class FlowConfigController {
  readonly #context: ConfigControllerContext;
  readonly #flows: FlowControl<Exchange>;
  #configured = '';
  #scheduled = false;
  #syncing = false;
  #dirty = false;
  #delayMs = MIN_DELAY_MS;
  #wroteMs = Number.NEGATIVE_INFINITY;

  constructor(context: ConfigControllerContext, flows: FlowControl<Exchange>) {
    this.#context = context;
    this.#flows = flows;
  }

  /** Configures flow control from the cache. Call before the first request. */
  load(): void {
    this.#configure();
  }

  start(): void {
    const changed = (): void => this.#changed();
    for (const kind of [LEVELS, SCHEMAS]) followKind(this.#context, kind, changed, changed);
  }

  /** Batches changes that arrive together. */
  #changed(): void {
    if (!this.#scheduled) {
      this.#scheduled = true;
      queueMicrotask(() => {
        this.#scheduled = false;
        this.#configure();
      });
    }
    this.#syncLater();
  }

  #configure(): void {
    const { cache, clock } = this.#context;
    const storedLevels = [...cache.kind(LEVELS)].map((each) => each.parse<PriorityLevelConfiguration>());
    const storedSchemas = [...cache.kind(SCHEMAS)].map((each) => each.parse<FlowSchema>());
    // Changes of status and annotations do not change the configuration.
    const digest = [...storedLevels, ...storedSchemas]
      .map(({ metadata }) => `${metadata?.uid}:${metadata?.generation}`)
      .join();
    if (digest === this.#configured) return;
    this.#configured = digest;
    this.#flows.configure(storedLevels, storedSchemas, clock.monotonicMs());
  }

  #syncLater(): void {
    this.#dirty = true;
    if (this.#syncing) return;
    this.#syncing = true;
    this.#context.clock.setTimer(this.#delayMs, () => void this.#sync());
  }

  async #sync(): Promise<void> {
    const { stopping, clock, log } = this.#context;
    if (stopping.aborted) return;
    this.#dirty = false;
    const before = this.#lastChange;
    try {
      await this.#ensure();
    } catch (error) {
      log.v(2, 'cannot ensure the mandatory flow control objects; retrying', { error: messageOf(error) });
      this.#dirty = true;
    }
    // Back off: another writer may keep changing the same objects.
    const nowMs = clock.monotonicMs();
    const wrote = this.#lastChange !== before;
    const again = wrote && nowMs - this.#wroteMs < MAX_DELAY_MS;
    this.#delayMs = again || this.#dirty ? Math.min(this.#delayMs * 2, MAX_DELAY_MS) : MIN_DELAY_MS;
    if (wrote) this.#wroteMs = nowMs;
    this.#syncing = false;
    if (this.#dirty) this.#syncLater();
  }

  get #lastChange(): number {
    const { cache } = this.#context;
    return Math.max(cache.kind(LEVELS).lastChange, cache.kind(SCHEMAS).lastChange);
  }

  async #ensure(): Promise<void> {
    await ensureFlowObjects(this.#context);
    await Promise.all([this.#removeObsolete(LEVELS, levels), this.#removeObsolete(SCHEMAS, schemas)]);
    await this.#context.cache.freshen();
    await this.updateStatuses();
  }

  /** Deletes auto-updated objects that this version no longer suggests. */
  async #removeObsolete(plural: string, known: readonly (FlowSchema | PriorityLevelConfiguration)[]): Promise<void> {
    const { cache } = this.#context;
    for (const object of [...cache.kind(plural)]) {
      if (known.some(({ metadata }) => metadata?.name === object.name)) continue;
      const { metadata } = object.parse();
      if (metadata?.annotations?.[AUTO_UPDATE_ANNOTATION] !== 'true') continue;
      await deleteObject(this.#context, ownRequest(this.#context, plural, GROUP, '', object.name), {
        gracePeriodSeconds: undefined,
        propagation: 'Background',
        uid: metadata.uid,
        resourceVersion: metadata.resourceVersion,
        dryRun: false,
      }).catch((error: unknown) => {
        if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
      });
    }
  }

  /** Sets the Dangling condition of all schemas. */
  async updateStatuses(): Promise<void> {
    const { cache } = this.#context;
    const names = new Set([...cache.kind(LEVELS)].map(({ name }) => name));
    const stored = [...cache.kind(SCHEMAS)].map((each) => each.parse<FlowSchema>());
    await Promise.all(stored.map((schema) => this.#setDangling(schema, names)));
  }

  async #setDangling(schema: FlowSchema, names: ReadonlySet<string>): Promise<void> {
    const level = schema.spec?.priorityLevelConfiguration.name ?? '';
    const reference = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(level)}`;
    const existence = names.has(level)
      ? { status: 'False', reason: 'Found', message: `${reference} and it exists` }
      : { status: 'True', reason: 'NotFound', message: `${reference} but there is no such object` };
    const isCurrent = ({ status }: FlowSchema): boolean => {
      const condition = status?.conditions?.find(({ type }) => type === 'Dangling');
      return (
        condition?.status === existence.status &&
        condition.reason === existence.reason &&
        condition.message === existence.message
      );
    };
    if (isCurrent(schema)) return;
    const { name = '' } = schema.metadata ?? {};
    const own = ownRequest(this.#context, SCHEMAS, GROUP, '', name);
    const request = { ...own, subresource: 'status', options: { ...own.options, fieldManager: CONSUMER } };
    try {
      await updateObject(this.#context, request, {
        strategy: request.kind.definition.statusStrategy ?? {},
        next: (current) => {
          const found = current as FlowSchema;
          if (isCurrent(found)) return found;
          const lastTransitionTime = timestamp(this.#context.clock.nowMs());
          const others = (found.status?.conditions ?? []).filter(({ type }) => type !== 'Dangling');
          return {
            ...found,
            status: { conditions: [...others, { type: 'Dangling', ...existence, lastTransitionTime }] },
          };
        },
      });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
}
