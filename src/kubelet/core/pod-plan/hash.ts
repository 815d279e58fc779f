import type { Container } from '../../../api/generated/core/v1.ts';
import { canonicalJson } from '../../../base/json/canonical-json.ts';

/** Fields whose change does not require a new container (resources are changed in place). */
const IGNORED = new Set(['resources', 'resizePolicy', 'livenessProbe', 'readinessProbe', 'startupProbe']);

/**
 * Hash of the spec from which a container was created. It is stored in the container's annotations, so that a changed
 * manifest restarts the container. FNV-1a over the canonical JSON (sorted keys). It must be stable across releases: a
 * change restarts every container of every node.
 */
export function containerHash(container: Container): string {
  const relevant = Object.fromEntries(Object.entries(container).filter(([field]) => !IGNORED.has(field)));
  return fnv1a(canonicalJson(relevant));
}

function fnv1a(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193);
    if (unit > 0xff) hash = Math.imul(hash ^ (unit >>> 8), 0x01000193);
  }
  return (hash >>> 0).toString(16);
}
