/** Parts of Nodes that a host saves for times without an API server: the fields that routes and service rules need. */
import type { Node } from '../../../api/generated/core/v1.ts';

/** Returns a copy without the status fields that change every few seconds. */
export function lastKnownNode({ apiVersion, kind, metadata, spec, status }: Node): Node {
  const { name, uid, labels, annotations } = metadata ?? {};
  const addresses = status?.addresses;
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata: {
      ...(name === undefined ? {} : { name }),
      ...(uid === undefined ? {} : { uid }),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: {
      ...(spec?.podCIDR === undefined ? {} : { podCIDR: spec.podCIDR }),
      ...(spec?.podCIDRs === undefined ? {} : { podCIDRs: spec.podCIDRs }),
    },
    status: addresses === undefined ? {} : { addresses },
  };
}
