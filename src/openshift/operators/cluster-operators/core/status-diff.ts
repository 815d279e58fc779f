/**
 * Describes the difference between two statuses of an operator. The texts are those of library-go's status controller.
 */
import type { OperandVersion, OperatorCondition } from '../../kinds/config/types.ts';

interface ReportedStatus {
  readonly conditions?: readonly OperatorCondition[];
  readonly versions?: readonly OperandVersion[];
}

/**
 * Lists the transitions of conditions and versions; empty if there are none. A changed message does not count, and
 * neither does the first report of an object.
 */
export function statusDiff(before: ReportedStatus | undefined, after: ReportedStatus): string {
  const old = new Map((before?.conditions ?? []).map((each) => [each.type, each]));
  if (old.size === 0) return '';
  const changes = (after.conditions ?? []).flatMap(({ type, status, message = '' }) => {
    const from = old.get(type)?.status;
    if (from === status) return [];
    const why = message === '' ? '' : ` (${JSON.stringify(message)})`;
    return [from === undefined ? `${type} set to ${status}${why}` : `${type} changed from ${from} to ${status}${why}`];
  });
  const [wasAt, isAt] = [versionsOf(before), versionsOf(after)];
  if (wasAt !== isAt) changes.push(`status.versions changed from [${wasAt}] to [${isAt}]`);
  return changes.join(',');
}

const versionsOf = (status: ReportedStatus | undefined): string =>
  (status?.versions ?? []).map(({ name, version }) => JSON.stringify(`${name} ${version}`)).join(' ');
