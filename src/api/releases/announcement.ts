/**
 * Announcement of an imported release: a ConfigMap with its manifest and signature, which every host verifies. Masters
 * serve the executables by digest below `RELEASE_PATH`.
 */
import type { ConfigMap } from '../generated/core/v1.ts';
import { MANIFEST_NAME, type ReleaseManifest, SIGNATURE_NAME } from './manifest.ts';

/** Namespace of OpenShift's cluster version operator. */
export const RELEASE_NAMESPACE = 'openshift-cluster-version';
export const RELEASE_LABEL = 'hyperedge.dev/release';
/** Path prefix for downloads; the hex SHA-256 of the file follows. */
export const RELEASE_PATH = '/hyperedge/releases/sha256/';
/**
 * Namespace and name of the ConfigMap with release keys in addition to those of the bootstrap file, one PEM per key.
 */
export const KEYS_NAMESPACE = 'openshift-config';
export const KEYS_NAME = 'release-keys';

export interface Announcement {
  readonly name: string;
  /** Text of the manifest as it was signed. */
  readonly text: string;
  /** Signature in base64. */
  readonly signature: string;
}

export const announcementName = ({ version }: ReleaseManifest): string => `release-${version}`;

export const announcementOf = ({ metadata, data }: ConfigMap): Announcement => ({
  name: metadata?.name ?? '',
  text: data?.[MANIFEST_NAME] ?? '',
  signature: data?.[SIGNATURE_NAME] ?? '',
});

export const announcementConfigMap = ({ name, text, signature }: Announcement): ConfigMap => ({
  metadata: { name, namespace: RELEASE_NAMESPACE, labels: { [RELEASE_LABEL]: 'true' } },
  data: { [MANIFEST_NAME]: text, [SIGNATURE_NAME]: signature },
});

/** Image reference that stands for the release in `oc adm upgrade`. */
export const releaseImage = (manifestSha256: string): string => `hyperedge.dev/release@sha256:${manifestSha256}`;
