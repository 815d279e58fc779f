/**
 * Reconciliation of the default configuration objects. The spec of a suggested object stays unchanged if an
 * administrator has set the annotation to 'false', or has changed an object without the annotation. Specs of mandatory
 * objects are always restored. Source: docs, "API Priority and Fairness", Maintenance of the mandatory and suggested
 * configuration objects.
 */

import { AUTO_UPDATE_ANNOTATION, EXEMPT } from '../../../api/flow-control/defaults.ts';
import type { FlowSchema, PriorityLevelConfiguration } from '../../../api/generated/flowcontrol/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';

type FlowObject = FlowSchema | PriorityLevelConfiguration;

/** The object to write; undefined if the stored one is correct. */
export function reconcileFlowObject<T extends FlowObject>(wanted: T, stored: T, mandatory: boolean): T | undefined {
  const annotation = stored.metadata?.annotations?.[AUTO_UPDATE_ANNOTATION];
  const follows = followsServer(stored);
  const update = mandatory || follows;
  let spec = update ? wanted.spec : stored.spec;
  // Administrators may change the shares of the exempt level.
  if (mandatory && !follows && wanted.metadata?.name === EXEMPT && 'exempt' in (stored.spec ?? {})) {
    spec = { ...(wanted.spec as object), exempt: (stored as PriorityLevelConfiguration).spec?.exempt } as T['spec'];
  }
  const autoUpdate = String(mandatory && wanted.metadata?.name === EXEMPT ? follows : update);
  if (annotation === autoUpdate && semanticEqual(spec, stored.spec)) return undefined;
  const annotations = { ...stored.metadata?.annotations, [AUTO_UPDATE_ANNOTATION]: autoUpdate };
  return { ...stored, metadata: { ...stored.metadata, annotations }, spec };
}

/**
 * Reports whether the server manages the spec: the annotation is 'true', or it is absent and the spec was never
 * changed.
 */
function followsServer({ metadata }: FlowObject): boolean {
  const annotation = metadata?.annotations?.[AUTO_UPDATE_ANNOTATION];
  if (annotation === 'true' || annotation === 'false') return annotation === 'true';
  return metadata?.generation === 1;
}
