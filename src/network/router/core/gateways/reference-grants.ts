/** References from one namespace to another. Source: gateway-api.sigs.k8s.io, "ReferenceGrant" (`v1beta1`). */
import type { KubeObject, ResourceType } from '../../../../api/meta/object.ts';

export interface ReferenceGrant extends KubeObject {
  spec?: {
    from?: readonly { readonly group?: string; readonly kind?: string; readonly namespace?: string }[];
    to?: readonly { readonly group?: string; readonly kind?: string; readonly name?: string }[];
  };
}

export const referenceGrants: ResourceType<ReferenceGrant> = {
  group: 'gateway.networking.k8s.io',
  version: 'v1beta1',
  kind: 'ReferenceGrant',
  plural: 'referencegrants',
  namespaced: true,
};

export interface Reference {
  /** Referring kind, of the group `gateway.networking.k8s.io`. */
  readonly from: { readonly kind: string; readonly namespace: string };
  /** Referenced kind, of the core group. */
  readonly to: { readonly kind: string; readonly namespace: string; readonly name: string };
}

export type Permits = (reference: Reference) => boolean;

/** Returns a function that checks whether a reference is permitted. References within a namespace need no grant. */
export const permitsOf =
  (grants: readonly ReferenceGrant[]): Permits =>
  ({ from, to }) =>
    from.namespace === to.namespace ||
    grants.some(
      ({ metadata, spec }) =>
        metadata?.namespace === to.namespace &&
        spec?.from?.some(
          (each) =>
            each.group === referenceGrants.group && each.kind === from.kind && each.namespace === from.namespace,
        ) === true &&
        spec.to?.some(
          (each) =>
            (each.group ?? '') === '' &&
            each.kind === to.kind &&
            (each.name === undefined || each.name === '' || each.name === to.name),
        ) === true,
    );
