/** Names by which the kubelet and the attach-detach controller agree. Source: pkg/volume/csi, pkg/volume/util. */

/** In `node.status.volumesAttached` and `volumesInUse`. */
export const uniqueVolumeName = (driver: string, volumeId: string): string => `kubernetes.io/csi/${driver}^${volumeId}`;

/** `sha256`: the digest in hexadecimal. */
export const attachmentNameOf = (
  volumeId: string,
  driver: string,
  node: string,
  sha256: (text: string) => string,
): string => `csi-${sha256(`${volumeId}${driver}${node}`)}`;
