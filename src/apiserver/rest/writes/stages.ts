/**
 * The write pipeline: every create, update, patch, apply and delete is a list of stages. Stages that several verbs
 * share are defined here; the lists are in create.ts, update.ts and delete.ts. Source:
 * k8s.io/apiserver/pkg/registry/generic/registry/store.go.
 */
import { type FieldError, failuresOf, invalid } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../../api/meta/validation.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';
import { type AdmissionRequest, refundReservations } from '../../pipeline/admission.ts';
import type { Allocator } from '../../pipeline/allocator.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import { isLarge, runSteps, yieldEventLoop } from '../../server/event-loop.ts';
import type { WriteContext } from '../context.ts';
import type { ManagedFields } from './managed-fields.ts';

/** A write in progress. Objects are in the storage version. */
export interface Write {
  readonly context: WriteContext;
  readonly request: WriteRequest;
  /** True: the write yields to the event loop between stages. */
  readonly large: boolean;
  /** Request for the plug-ins, set by the stage before `admit`. */
  readonly admission: AdmissionRequest | undefined;
}

/** A write that a strategy validates. */
export abstract class ValidatedWrite implements Write {
  readonly context: WriteContext;
  readonly request: WriteRequest;
  readonly strategy: WriteStrategy<KubeObject>;
  /** The stored object. Undefined on creates. */
  abstract readonly old: KubeObject | undefined;
  abstract readonly next: KubeObject;
  large: boolean;
  failures: FieldError[] = [];
  admission: AdmissionRequest | undefined = undefined;
  /** managedFields before mutating admission. */
  owners: ManagedFields = undefined;

  constructor(context: WriteContext, request: WriteRequest, strategy: WriteStrategy<KubeObject>) {
    this.context = context;
    this.request = request;
    this.strategy = strategy;
    this.large = isLarge(request.bodyBytes);
  }
}

/** One step of a write. Asynchronous only if it has to wait. Throws or rejects with an ApiError. */
export type Stage<W extends Write> = (write: W) => void | Promise<void>;

/**
 * Runs the stages in order. A large write yields between stages; a small write awaits only asynchronous stages. If a
 * stage fails, the reservations of the write are refunded.
 */
export async function runStages<W extends Write>(stages: readonly Stage<W>[], write: W): Promise<void> {
  let isFirst = true;
  try {
    for (const stage of stages) {
      if (write.large && !isFirst) await yieldEventLoop();
      isFirst = false;
      const pending = stage(write);
      if (pending !== undefined) await pending;
    }
  } catch (error) {
    if (write.admission !== undefined) await refundReservations(write.admission);
    throw error;
  }
}

export function admit({ context, admission }: Write): void | Promise<void> {
  return admission === undefined ? undefined : context.admission.mutate(admission);
}

export function validateAdmission({ context, admission }: Write): void | Promise<void> {
  return admission === undefined ? undefined : context.admission.validate(admission);
}

function validateMetadata(write: ValidatedWrite): void {
  const { next, old, request } = write;
  const { definition } = request.kind;
  write.failures = failuresOf(() =>
    old === undefined ? validateObjectMeta(next.metadata, definition) : validateObjectMetaUpdate(next, old, definition),
  );
}

/** Runs the validation of the strategy. Throws 'Invalid' with the failures of the strategy and of the metadata. */
function validate(write: ValidatedWrite): void | Promise<void> {
  const { strategy, next, old, failures } = write;
  const { apiVersion, definition } = write.request.kind;
  failures.push(
    ...failuresOf(
      () => [
        ...(strategy.validate?.(next, old) ?? []),
        ...((old === undefined ? strategy.validateCreate?.(next) : strategy.validateUpdate?.(next, old)) ?? []),
        ...(strategy.validateVersion?.(apiVersion, next, old) ?? []),
      ],
      definition.custom !== undefined,
    ),
  );
  if (strategy.validateExpensive === undefined) return refuseInvalid(write);
  return runExpensiveValidation(write);
}

function refuseInvalid({ failures, next, old, request }: ValidatedWrite): void {
  if (failures.length === 0) return;
  const { name, generateName } = next.metadata ?? {};
  throw invalid(request.kind.definition, old === undefined ? (name ?? generateName ?? '') : request.name, failures);
}

/** Evaluates CEL expressions, which may take long. They are skipped after failures of a type in BLOCKING. */
async function runExpensiveValidation(write: ValidatedWrite): Promise<void> {
  const { strategy, next, old, failures } = write;
  const steps = strategy.validateExpensive?.(next, old);
  if (steps !== undefined) {
    if (failures.some((each) => BLOCKING.has(each.type))) failures.push(NOT_JUDGED);
    else failures.push(...(await runSteps(steps)));
  }
  refuseInvalid(write);
}

/** Types of failures after which upstream does not evaluate expressions. */
const BLOCKING: ReadonlySet<FieldError['type']> = new Set<FieldError['type']>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);
const NOT_JUDGED: FieldError = {
  type: 'FieldValueInvalid',
  field: '<nil>',
  message:
    'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
};

/** Stages that validate an object after it has been prepared. */
export const CHECKS: readonly Stage<ValidatedWrite>[] = [validateMetadata, validate, validateAdmission];

/** The allocator of the kind's shared values. Undefined for most kinds. */
export function allocatorOf({ context, request }: Write): Allocator | undefined {
  return context.allocators.get(request.kind.definition.storagePrefix);
}
