/** Write strategies that many kinds share. */
import { semanticEqual } from '../meta/equality.ts';
import type { FieldError } from '../meta/field-error.ts';
import type { KubeObject, ObjectMeta } from '../meta/object.ts';
import { nextGeneration } from '../meta/object.ts';
import type { StrategyContext, Verb, WriteStrategy } from './definition.ts';

/** Reset fields for status writes that ignore metadata and spec. */
export const METADATA_AND_SPEC = [['metadata'], ['spec']] as const;

export const ALL_VERBS: readonly Verb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

interface Parts {
  spec?: unknown;
  status?: unknown;
}

interface SpecStatusRules<T extends KubeObject> {
  /** Status of a new object. Default: empty. */
  readonly initialStatus?: (object: T) => unknown;
  /** Whether the generation increases with changes of the spec. Default: true. */
  readonly generations?: boolean;
  /** Value whose changes increase the generation. Default: the spec. */
  readonly counts?: (object: T) => unknown;
  readonly prepareForCreate?: (object: T, context: StrategyContext) => void;
  readonly prepareForUpdate?: (object: T, old: T, context: StrategyContext) => void;
  readonly validate?: (object: T, old?: T) => FieldError[];
  readonly validateCreate?: (object: T) => FieldError[];
  readonly validateUpdate?: (object: T, old: T) => FieldError[];
  readonly validateStatusUpdate?: (object: T, old: T) => FieldError[];
  readonly prepareForStatusUpdate?: (object: T, old: T, context: StrategyContext) => void;
  readonly warnings?: (object: T, old: T | undefined) => string[];
}

/** Strategies for a kind with spec and status: each endpoint writes its part and restores the other part. */
export function specStatusStrategies<T extends KubeObject>(
  rules: SpecStatusRules<T>,
): { readonly strategy: WriteStrategy<T>; readonly statusStrategy: WriteStrategy<T> } {
  const generations = rules.generations ?? true;
  return {
    strategy: {
      prepareForCreate(object, context) {
        (object as Parts).status = rules.initialStatus?.(object) ?? {};
        if (generations) metadataOf(object).generation = 1;
        rules.prepareForCreate?.(object, context);
      },
      prepareForUpdate(object, old, context) {
        restorePart(object, old, 'status');
        rules.prepareForUpdate?.(object, old, context);
        if (!generations) return;
        if (rules.counts === undefined) bumpGeneration(object, old);
        else bumpWhere(!semanticEqual(rules.counts(object), rules.counts(old)), object, old);
      },
      ...(rules.validate === undefined ? {} : { validate: rules.validate }),
      ...(rules.validateCreate === undefined ? {} : { validateCreate: rules.validateCreate }),
      ...(rules.validateUpdate === undefined ? {} : { validateUpdate: rules.validateUpdate }),
      ...(rules.warnings === undefined ? {} : { warnings: rules.warnings }),
    },
    statusStrategy: {
      prepareForUpdate(object, old, context) {
        restorePart(object, old, 'spec');
        keepGeneration(object, old);
        rules.prepareForStatusUpdate?.(object, old, context);
      },
      ...(rules.validateStatusUpdate === undefined ? {} : { validateUpdate: rules.validateStatusUpdate }),
    },
  };
}

/** Restores all writable metadata, for subresources that change only their part of the object. */
export function restoreMetadata(object: KubeObject, old: KubeObject): void {
  const metadata = metadataOf(object) as Record<string, unknown>;
  const before = (old.metadata ?? {}) as Record<string, unknown>;
  for (const field of ['annotations', 'finalizers', 'labels', 'ownerReferences']) {
    if (before[field] === undefined) delete metadata[field];
    else metadata[field] = before[field];
  }
}

export function restorePart<T extends KubeObject>(object: T, old: T, part: 'spec' | 'status'): void {
  const before = (old as Parts)[part];
  if (before === undefined) delete (object as Parts)[part];
  else (object as Parts)[part] = before;
}

/** Sets the generation to that of the old object, plus one if the spec or the deletion timestamp has changed. */
export function bumpGeneration(object: KubeObject, old: KubeObject): void {
  bumpWhere(!semanticEqual((object as Parts).spec, (old as Parts).spec), object, old);
}

function bumpWhere(counted: boolean, object: KubeObject, old: KubeObject): void {
  const marked = object.metadata?.deletionTimestamp !== undefined && old.metadata?.deletionTimestamp === undefined;
  keepGeneration(object, old);
  if (counted || marked) metadataOf(object).generation = nextGeneration(old);
}

export function keepGeneration(object: KubeObject, old: KubeObject): void {
  const generation = old.metadata?.generation;
  if (generation === undefined) delete metadataOf(object).generation;
  else metadataOf(object).generation = generation;
}

/** Metadata without `readonly`: the server writes fields that clients only read. */
type WritableMeta = { -readonly [Field in keyof ObjectMeta]: ObjectMeta[Field] };

export function metadataOf(object: KubeObject): WritableMeta {
  object.metadata ??= {};
  return object.metadata;
}
