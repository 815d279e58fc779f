/**
 * Replaces image stream tags in pods and workloads with the images that the tags refer to, if the lookup policy of the
 * stream allows it. Source: openshift/openshift-apiserver plugin image.openshift.io/ImagePolicy; OKD documentation,
 * "Using image streams with Kubernetes resources".
 */

import type { KubeObject } from '../../../api/meta/object.ts';
import { latestEvent, splitTagName } from '../../../openshift/image-streams/core/index.ts';
import type { ImageStream } from '../../../openshift/image-streams/kinds/imagestreams/types.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';

/**
 * Annotation. With the value `*`, all image names of the object are resolved, whatever the streams' lookup policies
 * are.
 */
const RESOLVE_NAMES = 'alpha.image.policy.openshift.io/resolve-names';
const NAME = /^[a-z0-9][a-z0-9._-]*(?::[\w.-]+)?$/;

interface Containers {
  containers?: { image?: string }[];
  initContainers?: { image?: string }[];
}

interface Workload extends KubeObject {
  spec?: Containers & {
    template?: { metadata?: KubeObject['metadata']; spec?: Containers };
    jobTemplate?: { spec?: { template?: { spec?: Containers } } };
  };
}

export function imagePolicy(stream: (namespace: string, name: string) => ImageStream | undefined): AdmissionPlugin {
  return {
    name: 'image.openshift.io/ImagePolicy',
    resources: [
      'pods',
      'replicationcontrollers',
      'deployments.apps',
      'replicasets.apps',
      'statefulsets.apps',
      'daemonsets.apps',
      'jobs.batch',
      'cronjobs.batch',
    ],
    mutate(request) {
      if (request.subresource !== '' || request.object === undefined) return;
      if (request.operation === 'DELETE') return;
      const spec = containersOf(request, request.object as Workload);
      const before = imagesOf(containersOf(request, request.old as Workload | undefined));
      const { annotations = {} } = request.object.metadata ?? {};
      const always = annotations[RESOLVE_NAMES] === '*';
      for (const container of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]) {
        const { image = '' } = container;
        if (!NAME.test(image) || before.has(image)) continue;
        const parts = splitTagName(image, 'latest');
        const found = parts === undefined ? undefined : stream(request.namespace, parts.stream);
        if (parts === undefined || found === undefined || !(always || found.spec?.lookupPolicy?.local === true))
          continue;
        const event = latestEvent(found, parts.tag);
        if (event?.dockerImageReference !== undefined) container.image = event.dockerImageReference;
      }
    },
  };
}

function containersOf(request: AdmissionRequest, object: Workload | undefined): Containers | undefined {
  if (request.kind.plural === 'pods') return object?.spec;
  if (request.kind.plural === 'cronjobs') return object?.spec?.jobTemplate?.spec?.template?.spec;
  return object?.spec?.template?.spec;
}

/**
 * Images of the stored object. They are not resolved again: an update of another field must not change the template.
 */
function imagesOf(spec: Containers | undefined): ReadonlySet<string> {
  return new Set([...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ image = '' }) => image));
}
