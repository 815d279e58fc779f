/**
 * Printer columns of custom resources. Source:
 * k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
 */
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinitionVersion,
} from '../../../generated/apiextensions/v1.ts';
import type { JsonValue, KubeObject } from '../../../meta/object.ts';
import { ageColumn, nameColumn } from '../../../printing/columns.ts';
import { humanDuration } from '../../../printing/duration.ts';
import type { Column } from '../../../registry/definition.ts';
import { parseJsonPath } from '../../../structural/json-paths.ts';

const COLUMN_TYPES = ['string', 'integer', 'date', 'boolean', 'number'] as const;

export function columnsOf(version: CustomResourceDefinitionVersion): Column<KubeObject>[] {
  const declared = version.additionalPrinterColumns ?? [];
  const standard = [nameColumn, { ...ageColumn, type: 'date' } as const];
  if (declared.length === 0) return standard;
  try {
    return [nameColumn, ...declared.flatMap(columnOf)];
  } catch {
    // If a JSON path cannot be parsed, the kind is shown without its additional columns, as in upstream.
    return standard;
  }
}

function columnOf(declared: CustomResourceColumnDefinition): Column<KubeObject>[] {
  const type = COLUMN_TYPES.find((each) => each === declared.type);
  const path = parseJsonPath(declared.jsonPath);
  if (type === undefined) return [];
  return [
    {
      name: declared.name,
      type,
      description:
        declared.description ?? `Custom resource definition column (in JSONPath format): ${declared.jsonPath}`,
      ...(declared.format === undefined ? {} : { format: declared.format }),
      ...(declared.priority === undefined ? {} : { priority: declared.priority }),
      cell: (object, nowMs) => cell(type, path.all(object), nowMs),
    },
  ];
}

/** Text of a cell. If the path matches several values, the first one is shown. */
function cell(
  type: Column<KubeObject>['type'],
  found: readonly JsonValue[],
  nowMs: number,
): string | number | bigint | boolean | null {
  const [value] = found;
  if (value === undefined || value === null) return null;
  switch (type) {
    case 'integer':
      if (typeof value === 'bigint') return value;
      if (typeof value === 'number') return Math.trunc(value);
      return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : null;
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date': {
      const moment = typeof value === 'string' ? Date.parse(value) : Number.NaN;
      return Number.isNaN(moment) ? '<invalid>' : humanDuration(nowMs - moment);
    }
    default:
      return text(value);
  }
}

function text(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
