import { ApiError } from '../../../api/meta/status.ts';
import { type FieldSet, formatPath, members } from './field-set.ts';
import type { ManagedEntry } from './managed-fields.ts';

/** Fields of one other manager that an apply would change. */
export interface Conflict {
  readonly owner: ManagedEntry;
  readonly fields: FieldSet;
}

const MAX_CAUSES = 500;

/** Conflict error (409) of an apply, in upstream's wording, which kubectl parses. */
export function conflictError(conflicts: readonly Conflict[]): ApiError {
  const sortedConflicts = [...conflicts].sort((a, b) => (a.owner.manager < b.owner.manager ? -1 : 1));
  const causes: { reason: string; message: string; field: string }[] = [];
  const paragraphs: string[] = [];
  let count = 0;
  for (const { owner, fields } of sortedConflicts) {
    const lines: string[] = [];
    for (const path of members(fields)) {
      count++;
      if (causes.length >= MAX_CAUSES) continue;
      const text = formatPath(path);
      causes.push({ reason: 'FieldManagerConflict', message: `conflict with ${describeOwner(owner)}`, field: text });
      lines.push(`- ${text}`);
    }
    paragraphs.push(`conflicts with ${describeOwner(owner)}:\n${lines.join('\n')}`);
  }
  const [only] = causes;
  const message =
    count === 1 && only !== undefined
      ? `Apply failed with 1 conflict: ${only.message}: ${only.field}`
      : `Apply failed with ${count} conflicts: ${paragraphs.join('\n')}`;
  return new ApiError('Conflict', message, { causes });
}

function describeOwner(owner: ManagedEntry): string {
  const name = JSON.stringify(owner.manager);
  const who = owner.subresource === '' ? name : `${name} with subresource ${JSON.stringify(owner.subresource)}`;
  return owner.operation === 'Update' ? `${who} using ${owner.apiVersion}` : who;
}
