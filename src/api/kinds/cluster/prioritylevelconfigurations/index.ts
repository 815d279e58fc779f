/**
 * Priority levels. Source: k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration,
 * pkg/apis/flowcontrol/{v1,validation}.
 */

import { EXEMPT, mandatoryLevels, mandatorySpec } from '../../../flow-control/defaults.ts';
import type {
  LimitResponse,
  PriorityLevelConfiguration,
  QueuingConfiguration,
} from '../../../generated/flowcontrol/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindAlias, KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, METADATA_AND_SPEC, restoreMetadata, specStatusStrategies } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateFlowStatus } from '../flowschemas/validation.ts';

type Level = PriorityLevelConfiguration;

const DEFAULT_SHARES = 30;
const DEFAULT_QUEUING = { queues: 64, handSize: 8, queueLengthLimit: 50 } as const;
const MAX_QUEUES = 10_000_000;
/** Bits of the flow's hash from which shuffle sharding selects the hand of queues. */
const MAX_ENTROPY_BITS = 60;

const { strategy, statusStrategy } = specStatusStrategies<Level>({
  prepareForStatusUpdate: restoreMetadata,
  validateStatusUpdate: validateFlowStatus,
  validate: (level) => [...validate(level), ...validateMandatory(level)],
});

/** The mandatory levels are immutable, except for the field `exempt` of the exempt level. */
function validateMandatory({ metadata, spec }: Level): FieldError[] {
  const { name } = metadata ?? {};
  const fixed = mandatorySpec(mandatoryLevels, name);
  if (fixed === undefined) return [];
  const free = name === EXEMPT;
  if (semanticEqual(free ? { ...spec, exempt: fixed.exempt } : spec, fixed)) return [];
  const but = free ? " except the 'spec.exempt' field" : '';
  return [fieldError.invalid('spec', spec, `spec of '${name}'${but} must equal the fixed value`)];
}

function validate(level: Level): FieldError[] {
  const { type, limited, exempt } = level.spec ?? { type: '' };
  const name = level.metadata?.name ?? '';
  const errors: FieldError[] = [];
  if ((name === EXEMPT) !== (type === 'Exempt')) {
    errors.push(fieldError.invalid('spec.type', type, "must be 'Exempt' if and only if `name` is 'exempt'"));
  }
  switch (type) {
    case 'Exempt':
      if (limited !== undefined) {
        errors.push(fieldError.forbidden('spec.limited', 'must be nil if the type is not Limited'));
      }
      errors.push(...validatePercent(exempt?.lendablePercent, 'spec.exempt.lendablePercent'));
      return [...errors, ...validateShares(exempt?.nominalConcurrencyShares, 'spec.exempt.nominalConcurrencyShares')];
    case 'Limited':
      if (exempt !== undefined) errors.push(fieldError.forbidden('spec.exempt', 'must be nil if the type is Limited'));
      if (limited === undefined) {
        return [...errors, fieldError.required('spec.limited', 'must not be empty when type is Limited')];
      }
      errors.push(...validateShares(limited.nominalConcurrencyShares, 'spec.limited.nominalConcurrencyShares'));
      errors.push(...validateResponse(limited.limitResponse, 'spec.limited.limitResponse'));
      errors.push(...validatePercent(limited.lendablePercent, 'spec.limited.lendablePercent'));
      if ((limited.borrowingLimitPercent ?? 0) < 0) {
        errors.push(
          fieldError.invalid(
            'spec.limited.borrowingLimitPercent',
            limited.borrowingLimitPercent,
            'if specified, must be a non-negative integer',
          ),
        );
      }
      return errors;
    default:
      return [...errors, fieldError.notSupported('spec.type', type ?? '', ['Exempt', 'Limited'])];
  }
}

function validateShares(shares: number | undefined, path: string): FieldError[] {
  return (shares ?? 0) < 0 ? [fieldError.invalid(path, shares, 'must be a non-negative integer')] : [];
}

function validatePercent(percent: number | undefined, path: string): FieldError[] {
  return percent !== undefined && (percent < 0 || percent > 100)
    ? [fieldError.invalid(path, percent, 'must be between 0 and 100, inclusive')]
    : [];
}

function validateResponse(response: LimitResponse | undefined, at: string): FieldError[] {
  switch (response?.type) {
    case 'Reject':
      return response.queuing === undefined
        ? []
        : [fieldError.forbidden(`${at}.queuing`, 'must be nil if limited.limitResponse.type is not Limited')];
    case 'Queue':
      return response.queuing === undefined
        ? [fieldError.required(`${at}.queuing`, 'must not be empty if limited.limitResponse.type is Limited')]
        : validateQueuing(response.queuing, `${at}.queuing`);
    default:
      return [fieldError.notSupported(`${at}.type`, response?.type ?? '', ['Queue', 'Reject'])];
  }
}

function validateQueuing(queuing: QueuingConfiguration, at: string): FieldError[] {
  const { queues = 0, handSize = 0, queueLengthLimit = 0 } = queuing;
  const errors: FieldError[] = [];
  if (queueLengthLimit <= 0)
    errors.push(fieldError.invalid(`${at}.queueLengthLimit`, queueLengthLimit, 'must be positive'));
  if (queues <= 0) errors.push(fieldError.invalid(`${at}.queues`, queues, 'must be positive'));
  else if (queues > MAX_QUEUES) {
    errors.push(fieldError.invalid(`${at}.queues`, queues, `must not be greater than ${MAX_QUEUES}`));
  }
  if (handSize <= 0) errors.push(fieldError.invalid(`${at}.handSize`, handSize, 'must be positive'));
  else if (handSize > queues) {
    errors.push(fieldError.invalid(`${at}.handSize`, handSize, `should not be greater than queues (${queues})`));
  } else {
    const bits = entropyBits(queues, handSize);
    if (bits > MAX_ENTROPY_BITS) {
      errors.push(
        fieldError.invalid(
          `${at}.handSize`,
          handSize,
          `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${MAX_ENTROPY_BITS}`,
        ),
      );
    }
  }
  return errors;
}

/** Entropy in bits of dealing `hand` cards from `deck`: the logarithm of the number of ordered hands. */
function entropyBits(deck: number, hand: number): number {
  let bits = 0;
  for (let card = 0; card < hand && bits <= MAX_ENTROPY_BITS; card++) bits += Math.log2(deck - card);
  return Math.ceil(bits);
}

/** Aliases for older versions, in which nominalConcurrencyShares has the name assuredConcurrencyShares. */
function olderShares(version: string, since: string, removed: string): KindAlias<Level> {
  const renamed = (object: KubeObject, from: string, to: string): Level => {
    const { limited } = (object as Level).spec ?? {};
    if (limited === undefined) return object as Level;
    const entries = Object.entries(limited).map(([field, value]) => [field === from ? to : field, value]);
    return { ...object, spec: { ...(object as Level).spec, limited: Object.fromEntries(entries) } } as Level;
  };
  return {
    group: 'flowcontrol.apiserver.k8s.io',
    version,
    deprecated: { since, removed },
    convertTo: (object) => renamed(object, 'assuredConcurrencyShares', 'nominalConcurrencyShares'),
    convertFrom: (level) => renamed(level, 'nominalConcurrencyShares', 'assuredConcurrencyShares'),
  };
}

const queuingOf = (level: Level): QueuingConfiguration | undefined => level.spec?.limited?.limitResponse?.queuing;

export const priorityLevelConfigurations: KindDefinition<Level> = {
  group: 'flowcontrol.apiserver.k8s.io',
  version: 'v1',
  kind: 'PriorityLevelConfiguration',
  plural: 'prioritylevelconfigurations',
  singular: 'prioritylevelconfiguration',
  listKind: 'PriorityLevelConfigurationList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration',
  skeleton: { spec: {}, status: {} },
  storagePrefix: 'prioritylevelconfigurations',
  aliases: [
    sameShape('flowcontrol.apiserver.k8s.io', 'v1beta3', '1.29', '1.32'),
    olderShares('v1beta2', '1.26', '1.29'),
    olderShares('v1beta1', '1.23', '1.26'),
  ],
  setDefaults(level) {
    const { limited, exempt } = level.spec ?? {};
    if (exempt !== undefined) {
      exempt.nominalConcurrencyShares ??= 0;
      exempt.lendablePercent ??= 0;
    }
    if (limited === undefined) return;
    limited.nominalConcurrencyShares ??= DEFAULT_SHARES;
    limited.lendablePercent ??= 0;
    const queuing = limited.limitResponse?.queuing;
    if (queuing === undefined) return;
    for (const field of ['queues', 'handSize', 'queueLengthLimit'] as const) {
      if ((queuing[field] ?? 0) === 0) queuing[field] = DEFAULT_QUEUING[field];
    }
  },
  strategy,
  statusStrategy,
  statusResetFields: METADATA_AND_SPEC,
  columns: [
    nameColumn,
    column<Level>('Type', 'Whether requests of the level are limited.', (level) => level.spec?.type ?? ''),
    column<Level>(
      'NominalConcurrencyShares',
      'Share of the concurrency of the server.',
      (level) => level.spec?.limited?.nominalConcurrencyShares ?? NONE,
    ),
    column<Level>('Queues', 'Number of queues.', (level) => queuingOf(level)?.queues ?? NONE),
    column<Level>('HandSize', 'Number of queues that one flow may use.', (level) => queuingOf(level)?.handSize ?? NONE),
    column<Level>(
      'QueueLengthLimit',
      'Maximum length of a queue.',
      (level) => queuingOf(level)?.queueLengthLimit ?? NONE,
    ),
    ageColumn,
  ],
};
