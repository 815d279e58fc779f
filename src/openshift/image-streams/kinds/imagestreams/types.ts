/** Types of ImageStream in image.openshift.io/v1 and of its views. Source: openshift/api image/v1 of release 4.10. */
import type { KubeObject } from '../../../../api/meta/object.ts';
import type { ObjectRef } from '../../../templates/kinds/templateinstances/index.ts';

export interface TagReference {
  name?: string;
  annotations?: Record<string, string>;
  from?: ObjectRef;
  reference?: boolean;
  generation?: number;
  importPolicy?: { insecure?: boolean; scheduled?: boolean; importMode?: string };
  referencePolicy?: { type?: string };
}

export interface TagEvent {
  created?: string;
  dockerImageReference?: string;
  image?: string;
  generation?: number;
}

export interface TagCondition {
  type: string;
  status: string;
  lastTransitionTime: string;
  reason: string;
  message: string;
  generation: number;
}

export interface TagHistory {
  tag?: string;
  items?: TagEvent[];
  conditions?: TagCondition[];
}

export interface ImageStream extends KubeObject {
  spec?: { lookupPolicy?: { local?: boolean }; dockerImageRepository?: string; tags?: TagReference[] };
  status?: { dockerImageRepository?: string; publicDockerImageRepository?: string; tags?: TagHistory[] };
}
