/**
 * Sets imagePullPolicy Always, so that a pod without credentials for an image cannot use a copy that happens
 * to be on the node. Source: plugin/pkg/admission/alwayspullimages.
 */

import type { Container, Pod } from '../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor } from '../subject.ts';

const LISTS = ['initContainers', 'containers', 'ephemeralContainers'] as const;

interface ImageVolume {
  image?: { reference?: string; pullPolicy?: string };
}

export const alwaysPullImages: AdmissionPlugin = {
  name: 'AlwaysPullImages',
  resources: ['pods'],
  mutate(request) {
    const pod = affectedPod(request);
    if (pod === undefined) return;
    for (const { container } of containersOf(pod)) container.imagePullPolicy = 'Always';
    for (const { image } of imageVolumes(pod)) if (image !== undefined) image.pullPolicy = 'Always';
  },
  validate(request) {
    const pod = affectedPod(request);
    if (pod === undefined) return;
    const wrong = [
      ...containersOf(pod).map(({ container, path }) => ({
        path: `${path}.imagePullPolicy`,
        policy: container.imagePullPolicy,
      })),
      ...imageVolumes(pod).flatMap(({ image }, index) =>
        image === undefined ? [] : [{ path: `spec.volumes[${index}].image.pullPolicy`, policy: image.pullPolicy }],
      ),
    ].find(({ policy }) => policy !== 'Always');
    if (wrong === undefined) return;
    const value = JSON.stringify(wrong.policy ?? '');
    throw forbid(request, `${wrong.path}: Unsupported value: ${value}: supported values: "Always"`);
  },
};

/** The pod of the request if it may contain images that the stored pod did not have. */
function affectedPod(request: AdmissionRequest): Pod | undefined {
  if (!isFor(request, '', 'pods') || request.subresource !== '' || request.object === undefined) return undefined;
  const pod = request.object as Pod;
  if (request.operation === 'CREATE') return pod;
  if (request.operation !== 'UPDATE') return undefined;
  return semanticEqual(imagesOf(pod), imagesOf(request.old as Pod)) ? undefined : pod;
}

function containersOf(pod: Pod): { readonly container: Container; readonly path: string }[] {
  return LISTS.flatMap((list) =>
    ((pod.spec?.[list] ?? []) as Container[]).map((container, index) => ({
      container,
      path: `spec.${list}[${index}]`,
    })),
  );
}

const imageVolumes = (pod: Pod): ImageVolume[] => (pod.spec?.volumes ?? []) as ImageVolume[];

const imagesOf = (pod: Pod): (string | undefined)[] => [
  ...containersOf(pod).map(({ container }) => container.image),
  ...imageVolumes(pod).map(({ image }) => image?.reference),
];
