/**
 * How an imported release is announced: a ConfigMap with its manifest and signature, which each host verifies by
 * itself. The executables are served by the masters below `RELEASE_PATH`, by digest.
 */
import type { ConfigMap } from 'kubernetes-types/core/v1';
import { MANIFEST_NAME, type ReleaseManifest, SIGNATURE_NAME } from './manifest.ts';

/** OpenShift's namespace of the cluster version operator. */
export const RELEASE_NAMESPACE = 'openshift-cluster-version';
export const RELEASE_LABEL = 'hyperedge.dev/release';
/** Followed by the SHA-256 of a file in hex. */
export const RELEASE_PATH = '/hyperedge/releases/sha256/';
/** ConfigMap of namespace openshift-config: keys of releases beside those of the bootstrap file, one PEM a key. */
export const KEYS_NAMESPACE = 'openshift-config';
export const KEYS_NAME = 'release-keys';

export interface Announcement {
  readonly name: string;
  /** The manifest's text as it was signed. */
  readonly text: string;
  /** Base64. */
  readonly signature: string;
}

export const announcementName = ({ version }: ReleaseManifest): string => `release-${version}`;

export const announcementOf = ({ metadata, data }: ConfigMap): Announcement => ({
  name: metadata?.name ?? '',
  text: data?.[MANIFEST_NAME] ?? '',
  signature: data?.[SIGNATURE_NAME] ?? '',
});

export const announcing = ({ name, text, signature }: Announcement): ConfigMap => ({
  metadata: { name, namespace: RELEASE_NAMESPACE, labels: { [RELEASE_LABEL]: 'true' } },
  data: { [MANIFEST_NAME]: text, [SIGNATURE_NAME]: signature },
});

/** As a pull specification: what `oc adm upgrade` shows and sets. */
export const releaseImage = (manifestSha256: string): string => `hyperedge.dev/release@sha256:${manifestSha256}`;
