/**
 * Checks the existence of namespaces, or creates missing ones. Sources:
 * plugin/pkg/admission/namespace/{exists,autoprovision}.
 */

import { errors } from '../../../api/meta/status.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import type { NamespaceSource } from '../matching.ts';

const isInside = ({ kind, namespace }: AdmissionRequest): boolean => kind.definition.namespaced && namespace !== '';

/** Rejects requests in namespaces that do not exist. */
export function namespaceExists(namespaces: NamespaceSource): AdmissionPlugin {
  return {
    name: 'NamespaceExists',
    async validate(request) {
      if (!isInside(request) || namespaces.cached(request.namespace) !== undefined) return;
      if ((await namespaces.stored(request.namespace)) !== undefined) return;
      throw errors.notFound({ group: '', plural: 'namespaces' }, request.namespace);
    },
  };
}

/** Creates a missing namespace when an object is created in it. */
export function namespaceAutoProvision(
  namespaces: NamespaceSource,
  create: (name: string) => Promise<void>,
): AdmissionPlugin {
  return {
    name: 'NamespaceAutoProvision',
    async mutate(request) {
      if (request.operation !== 'CREATE' || !isInside(request) || request.dryRun) return;
      if (namespaces.cached(request.namespace) !== undefined) return;
      if ((await namespaces.stored(request.namespace)) === undefined) await create(request.namespace);
    },
  };
}
