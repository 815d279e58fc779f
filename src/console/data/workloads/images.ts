/** Images that the nodes report. */
import type { Node, Pod } from '../../../api/generated/core/v1.ts';

export interface ImageView {
  readonly name: string;
  readonly bytes: number;
  readonly nodes: readonly string[];
  readonly missing: readonly string[];
}

/** One entry for each image, under its tag if it has a tag. */
export function imagesByName(nodes: readonly Node[]): readonly ImageView[] {
  const names = nodes.map(({ metadata }) => metadata?.name ?? '');
  const images = new Map<string, { bytes: number; nodes: Set<string> }>();
  for (const { metadata, status } of nodes)
    for (const { names: all = [], sizeBytes = 0 } of status?.images ?? []) {
      const name = all.find((each) => !each.includes('@')) ?? all[0];
      if (name === undefined) continue;
      const image = images.get(name) ?? { bytes: 0, nodes: new Set<string>() };
      image.bytes = Math.max(image.bytes, Number(sizeBytes));
      image.nodes.add(metadata?.name ?? '');
      images.set(name, image);
    }
  return [...images].map(([name, { bytes, nodes: on }]) => ({
    name,
    bytes,
    nodes: [...on],
    missing: names.filter((node) => !on.has(node)),
  }));
}

export interface MissingImage {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly image: string;
  readonly node: string;
  readonly reason: string;
  readonly message: string;
}

const WAITS_FOR_IMAGE = /^(?:ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName|ImageInspectError)$/;

/** Containers that wait for an image that is missing on their node. */
export function missingImages(pods: readonly Pod[]): readonly MissingImage[] {
  return pods.flatMap(({ metadata, spec, status }) =>
    [
      ...(status?.initContainerStatuses ?? []),
      ...(status?.containerStatuses ?? []),
      ...(status?.ephemeralContainerStatuses ?? []),
    ]
      .filter(({ state }) => WAITS_FOR_IMAGE.test(state?.waiting?.reason ?? ''))
      .map(({ name = '', image = '', state }) => ({
        namespace: metadata?.namespace ?? '',
        pod: metadata?.name ?? '',
        container: name,
        image,
        node: spec?.nodeName ?? '',
        reason: state?.waiting?.reason ?? '',
        message: state?.waiting?.message ?? '',
      })),
  );
}
