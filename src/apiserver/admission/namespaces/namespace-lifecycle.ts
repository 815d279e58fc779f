/**
 * Rejects creates in missing and terminating namespaces, and the deletion of system namespaces. Source:
 * plugin/namespace/lifecycle.
 */

import type { Namespace } from '../../../api/generated/core/v1.ts';
import { ApiError, errors } from '../../../api/meta/status.ts';
import { storeRevision } from '../../../base/brand.ts';
import type { AdmissionRequest, NamespaceGuard } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor } from '../subject.ts';

const IMMORTAL: ReadonlySet<string> = new Set([
  'default',
  'kube-system',
  'kube-public',
  'openshift-infra',
  'openshift-node',
]);

export interface NamespaceSource {
  cached(name: string): CachedObject | undefined;
  stored(name: string): Promise<CachedObject | undefined>;
  key(name: string): string;
}

export function namespaceLifecycle(namespaces: NamespaceSource): AdmissionPlugin {
  const check = (request: AdmissionRequest, namespace: CachedObject): void => {
    const { metadata, status } = namespace.shared<Namespace>();
    if (metadata?.deletionTimestamp === undefined && status?.phase !== 'Terminating') return;
    const refusal = forbid(
      request,
      `unable to create new content in namespace ${request.namespace} because it is being terminated`,
    );
    throw new ApiError('Forbidden', refusal.message, {
      ...refusal.details,
      causes: [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${request.namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    });
  };
  const readStored = async (request: AdmissionRequest): Promise<CachedObject> => {
    const stored = await namespaces.stored(request.namespace);
    if (stored === undefined) throw errors.notFound({ group: '', plural: 'namespaces' }, request.namespace);
    check(request, stored);
    return stored;
  };
  /**
   * Another server may terminate the namespace between this check and the commit. Therefore the commit requires that
   * the revision of the namespace is unchanged.
   */
  const guardOf = (request: AdmissionRequest, { revision }: CachedObject): NamespaceGuard => ({
    guard: { key: namespaces.key(request.namespace), modRevision: storeRevision(revision) },
    renew: async () => guardOf(request, await readStored(request)),
  });
  return {
    name: 'NamespaceLifecycle',
    mutate(request) {
      if (request.operation !== 'CREATE' || !request.kind.definition.namespaced) return;
      const cached = namespaces.cached(request.namespace);
      if (cached !== undefined) {
        check(request, cached);
        request.namespaceGuard = guardOf(request, cached);
        return;
      }
      // The namespace may be too new for the watch cache.
      return readStored(request).then((stored) => {
        request.namespaceGuard = guardOf(request, stored);
      });
    },
    validate(request) {
      if (request.operation !== 'DELETE' || !isFor(request, '', 'namespaces')) return;
      if (IMMORTAL.has(request.name)) throw forbid(request, 'this namespace may not be deleted');
    },
  };
}
